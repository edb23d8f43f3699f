// A few small programs of upstream's test images, by the name under which this one is called.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	switch name := filepath.Base(os.Args[0]); name {
	case "pause":
		pause()
	case "nnp":
		fmt.Printf("Effective uid: %d\n", os.Geteuid())
	case "nmeter":
		fmt.Println(time.Now().UTC().Format("15:04:05.000")) // all that is asked of it is '%3t'
	case "sh":
		shell()
	default:
		fmt.Fprintf(os.Stderr, "error: no program is called %s\n", name)
		os.Exit(127)
	}
}

// pause waits until it is told to end, and takes in orphans as the first process of a pod does.
func pause() {
	ends, children := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGTERM, syscall.SIGINT)
	signal.Notify(children, syscall.SIGCHLD)
	for {
		select {
		case <-ends:
			return
		case <-children:
			for pid := 1; pid > 0; pid, _ = syscall.Wait4(-1, nil, syscall.WNOHANG, nil) {
			}
		}
	}
}

// shell runs busybox' own, which drops variables with a dash or dot in their name: `env` alone is run without it.
func shell() {
	program, words := "/bin/ash", append([]string{"/bin/sh"}, os.Args[1:]...)
	if len(os.Args) == 3 && os.Args[1] == "-c" && os.Args[2] == "env" {
		program, words = "/bin/busybox", []string{"env"}
	}
	fmt.Fprintln(os.Stderr, syscall.Exec(program, words, os.Environ()))
	os.Exit(127)
}
