"""What can be set about a service, checked when it is made."""

from __future__ import annotations

import dataclasses
import ipaddress

from surelabel.exceptions import InvalidInputError


@dataclasses.dataclass(frozen=True)
class ServiceSettings:
    """Where a service listens, and who may use it.

    Attributes
    ----------
    host, port
        Where it listens; the default can only be reached from this machine. Port 0 takes a free one.
    token : str, optional
        Bearer token of programs, and the password of people (HTTP Basic). Required if other machines can connect.
    allowed_hosts : tuple of str, optional
        Host names that requests may be addressed to, ("*",) for any. None: this machine's names if the host is a
        loopback address, which keeps pages of other sites out, and any name otherwise.
    max_body_bytes : int
        Limit of the body of a request.
    workers : int
        Processes that serve the same address.
    watch : bool
        Whether to watch for texts that drift away from the calibration texts; see the metrics.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = dataclasses.field(default=None, repr=False)
    allowed_hosts: tuple[str, ...] | None = None
    max_body_bytes: int = 2 * 2**20
    workers: int = 1
    watch: bool = False

    def __post_init__(self) -> None:
        limits = {"port": (0, 65_535), "max_body_bytes": (1_024, 2**40), "workers": (1, 1_000)}
        for name, (least, most) in limits.items():
            value = getattr(self, name)
            if type(value) is not int or not least <= value <= most:
                message = f"The {name!r} setting of a service must be a whole number from {least:,} to {most:,}."
                raise InvalidInputError(f"{message} Got {value!r} instead.")
        token = self.token
        if token is not None and not (token.isascii() and token.isprintable() and token == token.strip() != ""):
            raise InvalidInputError("The 'token' of a service must be printable ASCII without spaces around it.")
        if token is None and not self.is_local:
            raise InvalidInputError(
                f"Other machines can reach {self.host}, so the service needs a token: set SURELABEL_TOKEN or --token, "
                "or listen on 127.0.0.1."
            )

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the service."""
        try:
            return self.host.lower() == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def hosts(self) -> list[str]:
        """Host names that requests may be addressed to, ["*"] for any."""
        if self.allowed_hosts is not None:
            return [host.lower() for host in self.allowed_hosts]
        own = f"[{self.host}]" if ":" in self.host else self.host.lower()
        return ["localhost", "127.0.0.1", "[::1]", own] if self.is_local else ["*"]
