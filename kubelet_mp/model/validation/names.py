"""The grammars of names: each function gives a list of problems, empty for a good name.

Source: Kubernetes 1.37 k8s.io/apimachinery/pkg/util/validation. Lengths are in bytes of UTF-8.
"""

from __future__ import annotations

import ipaddress
import re

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_UNDERSCORED = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH = rf"{_UNDERSCORED}(\.{_UNDERSCORED})*"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_QUALIFIED})?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_HEADER = "[-A-Za-z0-9]+"
_SYSCTL_SEGMENT = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
SYSCTL = rf"({_SYSCTL_SEGMENT}[\./])*{_SYSCTL_SEGMENT}"
_UID = "[A-Za-z0-9][-._A-Za-z0-9]*"

_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
    "and end with an alphanumeric character"
)
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character"
)
_SEARCH_TEXT = _SUBDOMAIN_TEXT.replace("characters, '-'", "characters, '_', '-'")
_QUALIFIED_TEXT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character"
)
_LABEL_VALUE_TEXT = f"a valid label must be an empty string or {_QUALIFIED_TEXT.removeprefix('must ')}"
_ENV_TEXT = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_IP_TEXT = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


def dns_label(value: str) -> list[str]:
    """A container, volume or namespace name."""
    if not _matches(_LABEL, value) and _matches(_SUBDOMAIN, value):
        return [*_length(value, 63), "must not contain dots"]
    return _checked(value, 63, _LABEL, _LABEL_TEXT, "my-name", "123-abc")


def dns_subdomain(value: str) -> list[str]:
    """A pod or node name."""
    return _checked(value, 253, _SUBDOMAIN, _SUBDOMAIN_TEXT, "example.com")


def dns_search(value: str) -> list[str]:
    """A DNS search domain: underscores are allowed."""
    return _checked(value, 253, _SEARCH, _SEARCH_TEXT, "example.com")


def qualified_name(value: str) -> list[str]:
    """A label or annotation key, a condition type: name or prefix/name."""
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        form = _regex(_QUALIFIED_TEXT, _QUALIFIED, "MyName", "my.name", "123-abc")
        prefixed = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {form} {prefixed}"]
    problems = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        problems += [f"prefix part {problem}" for problem in dns_subdomain(prefix)]
    if not name:
        return [*problems, "name part must be non-empty"]
    return problems + [
        f"name part {problem}"
        for problem in _checked(name, 63, _QUALIFIED, _QUALIFIED_TEXT, "MyName", "my.name", "123-abc")
    ]


def label_value(value: str) -> list[str]:
    return _checked(value, 63, _LABEL_VALUE, _LABEL_VALUE_TEXT, "MyValue", "my_value", "12345")


def config_key(value: str) -> list[str]:
    """A key of a ConfigMap or Secret."""
    if value in (".", "..") or value.startswith(".."):
        return ["must not be '.' and must not start with '..'"]
    text = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
    return _checked(value, 253, _CONFIG_KEY, text, "key.name", "KEY_NAME", "key-name")


def env_name(value: str) -> list[str]:
    return [] if all(" " <= c <= "~" and c != "=" for c in value) else [_ENV_TEXT]


def header_name(value: str) -> list[str]:
    text = "a valid HTTP header must consist of alphanumeric characters or '-'"
    return [] if _matches(_HEADER, value) else [_regex(text, _HEADER, "X-Header-Name")]


def sysctl(value: str) -> list[str]:
    good = len(value) <= 253 and _matches(SYSCTL, value)
    return [] if good else [f"must have at most 253 characters and match regex ^{SYSCTL}$"]


def uid(value: str) -> list[str]:
    """A pod UID becomes part of paths and cgroup names, so it is held to what is safe there."""
    if len(value) <= 128 and _matches(_UID, value):
        return []
    return ["must be at most 128 letters, digits, '-', '_' or '.', and start with a letter or digit"]


def port_number(value: int) -> list[str]:
    return [] if 1 <= value <= 65535 else ["must be between 1 and 65535, inclusive"]


def port_name(value: str) -> list[str]:
    problems = _length(value, 15)
    if not _matches("[-a-z0-9]+", value):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= c <= "z" for c in value):
        problems.append("must contain at least one letter (a-z)")
    if "--" in value:
        problems.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return problems


def ip_address(value: str) -> list[str]:
    """IPv4 without leading zeros, or IPv6 that neither has a zone nor stands for an IPv4 address."""
    octets = value.split(".")
    if len(octets) == 4 and all(octet.isdigit() for octet in octets):
        plain = ".".join(octet.lstrip("0") or "0" for octet in octets)
        if plain != value and not ip_address(plain):
            return ["must not have leading 0s"]
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        return [_IP_TEXT]
    if isinstance(address, ipaddress.IPv4Address):
        return []
    if address.scope_id:
        return [_IP_TEXT]
    return ["must not be an IPv4-mapped IPv6 address"] if address.ipv4_mapped else []


def no_backsteps(value: str) -> list[str]:
    return ["must not contain '..'"] if ".." in value.split("/") else []


def relative_path(value: str) -> list[str]:
    """A path below something: relative and without '..'."""
    return (["must be a relative path"] if value.startswith("/") else []) + no_backsteps(value)


def unreserved_path(value: str) -> list[str]:
    """A relative path that starts with no '..' either, as the volume writer keeps such names for itself."""
    problems = relative_path(value)
    if value.startswith("..") and not value.startswith("../") and value != "..":
        problems.append("must not start with '..'")
    return problems


def user_id(value: int) -> list[str]:
    return [] if 0 <= value <= 2**31 - 1 else [f"must be between 0 and {2**31 - 1}, inclusive"]


def _matches(pattern: str, value: str) -> bool:
    return re.fullmatch(pattern, value) is not None


def _length(value: str, limit: int) -> list[str]:
    return [] if len(value.encode()) <= limit else [f"must be no more than {limit} bytes"]


def _checked(value: str, limit: int, pattern: str, text: str, *examples: str) -> list[str]:
    too_long = _length(value, limit)
    return too_long or ([] if _matches(pattern, value) else [_regex(text, pattern, *examples)])


def _regex(text: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{text} (e.g. {shown}regex used for validation is '{pattern}')"
