"""Bring real parts up on a bare machine and take them down again without a trace.

`console`, `cache`, `venv`, `debs`, `goparts` and `images` fetch or make the parts and need only the standard
library; `layout`, `config`, `runtime` and `sweep` run a private containerd, `cluster` (with `controlplane`,
`certs`, `bootstrap`, `loopback`) a control plane; `cri` and `agent` talk to them and to kubelet-mp.
No test and no expectation about the agent lives here.
"""
