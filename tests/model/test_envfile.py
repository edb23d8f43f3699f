import subprocess

import pytest

from kubelet_mp.model.envfile import value_in

FILE = """# comment

   A='plain'
\tB='one
  two # kept
three' # a comment
C= 'lost'
D=''
E='x=y$HOME\\n'
A='second'
"""


@pytest.mark.parametrize(("key", "value"), [
    ("A", "plain"), ("B", "one\n  two # kept\nthree"), ("C", ""), ("D", ""), ("E", "x=y$HOME\\n"), ("Z", "")])
def test_values(key: str, value: str):
    assert value_in(FILE, key) == value
    assert value_in(FILE.replace("\n", "\r\n"), key) == value


def test_the_shell_reads_the_same():
    text = FILE.replace("A='second'\n", "").replace("C= 'lost'\n", "")
    for key in "ABDE":
        shown = subprocess.run(["sh", "-c", f'{text}\nprintf %s "${key}"'], capture_output=True, text=True, timeout=10)
        assert shown.stdout == value_in(text, key)


@pytest.mark.parametrize(("text", "problem"), [
    ("A='1'\nnothing", "line 2: missing '='"),
    ("='1'", "line 1: empty variable name"),
    ("A ='1'", "line 1: whitespace before '=' is not allowed"),
    ("A=1", "line 1: value must be enclosed in single quotes"),
    ('A="1"', "line 1: value must be enclosed in single quotes"),
    ("A=", "line 1: value must be enclosed in single quotes"),
    ("\nA='1\n2", "line 2: unclosed single quote"),
    ("A='1'\n\nB='2\n3' x", "line 4: unexpected content after closing quote"),
])
def test_faults_name_the_line(text: str, problem: str):
    with pytest.raises(ValueError, match=problem):
        value_in(text, "Z")


def test_what_follows_the_value_is_not_looked_at():
    assert value_in("A='1'\nbroken", "A") == "1"
