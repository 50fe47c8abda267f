# logging to stderr and to a file, warnings, an exception in the log.
import logging
import logging.handlers
import warnings

logging.basicConfig(level=logging.INFO, format="%(levelname)s:%(name)s:%(message)s")
log = logging.getLogger("benign")
handler = logging.handlers.RotatingFileHandler("app.log", maxBytes=200, backupCount=2)
log.addHandler(handler)
log.debug("not shown")
log.info("started with %d workers", 3)
log.warning("unicode: %s", "žár")
for number in range(10):
    log.info("line %d of the rotating file", number)
try:
    {}["key"]
except KeyError:
    log.exception("lookup failed")
warnings.warn("old way", DeprecationWarning)
warnings.warn("think again")
with warnings.catch_warnings():
    warnings.simplefilter("error")
    try:
        warnings.warn("now an error")
    except UserWarning as warning:
        print(repr(warning))
handler.close()
print(sorted(path.name for path in __import__("pathlib").Path().glob("app.log*")))
