"""An API server in memory, over real HTTP: `with FakeApi() as api: …`, `api.kube()` is a client of it.

What belongs here: what a node's agent sees of an API server (versions, watches, patches, deletion with grace),
and faults on demand. What may not live here: schemas, defaults, controllers, authorization.
"""

from tests.fakes.api.server import FakeApi
from tests.fakes.api.store import Refused, path_of

__all__ = ["FakeApi", "Refused", "path_of"]
