"""Settings: one file, read from the environment. An unknown JEDI_* variable is an error, so that a typo cannot hide.

`DATABASE_URL` names the PostgreSQL server; `manage.py` puts the embedded server's address there when it is unset.
What is secret (it, JEDI_SECRET_KEY, JEDI_OLD_SECRET_KEYS, JEDI_EMAIL_URL, JEDI_PILOT_TOKEN) may stand in a file instead, which
a variable of that name with `_FILE` behind it names: the environment of a process can be read by all that its user runs.
"""

from __future__ import annotations

import os
from ipaddress import ip_network
from pathlib import Path
from urllib.parse import urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

from jedisite.database import database_limits
from jedisite.identity import oidc_settings, secret_key
from jedisite.processes import log_setup
from jedisite.server import arrivals

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.FileAwareEnv()

KNOWN = {
    "JEDI_HOME": "folder for all data of this installation (default: .jedisite in the checkout)",
    "JEDI_OLD_SECRET_KEYS": "earlier signing keys, separated by commas: what they signed or encrypted can still be read",
    "JEDI_SECRET_KEY": "signing key shared by all machines (default: made once and kept in JEDI_HOME)",
    "JEDI_DEBUG": "1 shows tracebacks in the browser; never in production",
    "JEDI_ALLOWED_HOSTS": "comma list of host names of the site (default: this machine, and that of JEDI_SERVER_URL)",
    "JEDI_HTTPS": "1: people and programs reach the site over https only, through a proxy (default: as JEDI_SERVER_URL says)",
    "JEDI_HTTPS_HEADER": "with JEDI_HTTPS: header that the proxy sets to http or https (default X-Forwarded-Proto)",
    "JEDI_PROXIES": "comma list of addresses or networks whose X-Forwarded-For counts (default: with JEDI_HTTPS this machine)",
    "JEDI_HSTS_S": "with JEDI_HTTPS: seconds for which browsers must use https only (default a year; 0: not sent)",
    "JEDI_CSRF_TRUSTED_ORIGINS": "comma list of origins (https://...) of the site behind a proxy",
    "JEDI_HEARTBEAT_TIMEOUT_S": "seconds without a heartbeat after which a job is lost (default: the time-out job.heartbeat)",
    "JEDI_PILOT_HEARTBEAT_S": "seconds between the heartbeats of local pilots (default 30)",
    "JEDI_SENT_TIMEOUT_S": "seconds within which a pilot must start a job (default: the time-out job.sent)",
    "JEDI_OPEN_DATASET_INTERVAL_S": "seconds between checks of a growing input dataset (default: the time-out dataset.growing)",
    "JEDI_PENDING_RETRY_S": "longest wait in pending in seconds (default: the time-out task.quick_retry; 0: by cause)",
    "JEDI_LIMITS": "time-outs and caps: comma list of name=number, names as on the page Time-outs",
    "JEDI_MOST_ACTIVE_TASKS": "active tasks of one label that a user may have (default: no limit)",
    "JEDI_CHECK_OUTPUTS": "check of outputs when a task ends: off, report faults (default), or pause the task if there are any",
    "JEDI_QUEUE_FLOOR": "minimum number of jobs kept queued at a site (default 100)",
    "JEDI_ARCHIVE_AFTER_DAYS": "days after which final jobs move to the archive (default 7)",
    "JEDI_SANDBOX_QUOTA_MB": "megabytes of sandboxes that the site keeps for one user (default 10000)",
    "JEDI_SANDBOX_DAYS": "days after its last use for which a sandbox is kept (default 30)",
    "JEDI_BULK_LIMIT": "maximum number of tasks or jobs of one bulk command (default 1000)",
    "JEDI_WORKERS": "worker processes of one django-q2 cluster (default 4)",
    "JEDI_CLUSTER_PULSE": "file that the workers of a cluster touch, set by manage.py cluster",
    "JEDI_TURN_S": "seconds that an agent may spend on one task without progress before it puts the task aside (default 45)",
    "JEDI_LOG_LEVEL": "level of the log: DEBUG, INFO, WARNING (default INFO)",
    "JEDI_LOG_JSON": "1 writes the log as JSON lines",
    "JEDI_POSTGRES_BIN": "bin folder of the PostgreSQL that the embedded server runs",
    "JEDI_SERVER_URL": "address of the site, for pilots, local workers and links in mails",
    "JEDI_GPI_HOME": "folder of the jobs of Ganga's interface (docs/ganga.md); the site does not read it",
    "JEDI_TOKEN": "bearer token of scripts that use tasks_app/gpi/client.py; the site does not read it",
    "JEDI_EMAIL_URL": "mail server as smtp://name:password@host:25, smtp+tls:// or smtp+ssl:// (default: no mail is sent)",
    "JEDI_EMAIL_FROM": "address that mails to owners of tasks come from (default jedi@localhost)",
    "JEDI_PILOT": "pilot that the local workers start: jedi (default), or panda for PanDA's own",
    "JEDI_PANDA_PILOT_DIR": "folder of the unpacked source of panda-pilot, for JEDI_PILOT=panda; docs/pilots.md",
    "JEDI_PAYLOAD_NETWORK": "1 gives payloads of the local pilots the network of this machine (default: no network)",
    "JEDI_PAYLOAD_READS": "comma list of folders that payloads of the local pilots can read besides the system's, such as /cvmfs",
    "JEDI_TRANSFORM_URL": "address from which PanDA's pilots fetch transforms (default: the one built into them)",
    "JEDI_PILOT_TOKEN": "token that pilots present",
    "JEDI_OIDC": "TOML file with the OIDC issuers whose tokens are accepted, one table per VO; docs/identity.md",
    "JEDI_DEV_ISSUER": "VO for which this site itself is an OIDC issuer, for trials; needs JEDI_SERVER_URL (default: none)",
    "JEDI_X509_HEADER": "header with the DN of a client's certificate, set by a trusted proxy, such as X-Client-DN",
    "JEDI_X509_PROXIES": "comma list of the addresses or networks of those proxies; both must be set",
    "JEDI_DATABASE_LIMITS": "time limits of the database (s), comma list of name=number; jedisite/database/database_limits.py",
    "JEDI_SLOW_CLIENTS": "time limits for slow clients, comma list of name=number; jedisite/server/arrivals.py",
    "JEDI_TEST_ALL": "1 makes tests fail instead of being skipped for what is not installed; full runs long variants too",
}
_IN_FILES = {"JEDI_SECRET_KEY_FILE", "JEDI_OLD_SECRET_KEYS_FILE", "JEDI_EMAIL_URL_FILE", "JEDI_PILOT_TOKEN_FILE"}
_unknown = sorted(name for name in os.environ if name.startswith("JEDI_") and name not in KNOWN.keys() | _IN_FILES)
if _unknown:
    raise ImproperlyConfigured(
        f"unknown settings in the environment: {', '.join(_unknown)}; the settings are {', '.join(KNOWN)}"
    )

JEDI_LIGHT = False
"""True for a command that needs neither database nor agents: see light_settings."""
JEDI_HOME = Path(env.str("JEDI_HOME", default=str(BASE_DIR / ".jedisite")))
JEDI_HEARTBEAT_TIMEOUT_S: int | None = env.int("JEDI_HEARTBEAT_TIMEOUT_S", default=None)
JEDI_PILOT_HEARTBEAT_S = env.float("JEDI_PILOT_HEARTBEAT_S", default=30)
JEDI_SENT_TIMEOUT_S: int | None = env.int("JEDI_SENT_TIMEOUT_S", default=None)
JEDI_TURN_S = env.float("JEDI_TURN_S", default=45)
JEDI_OPEN_DATASET_INTERVAL_S: int | None = env.int("JEDI_OPEN_DATASET_INTERVAL_S", default=None)
JEDI_MOST_ACTIVE_TASKS: int | None = env.int("JEDI_MOST_ACTIVE_TASKS", default=None)
JEDI_PENDING_RETRY_S: int | None = env.int("JEDI_PENDING_RETRY_S", default=None)
JEDI_CHECK_OUTPUTS = env.str("JEDI_CHECK_OUTPUTS", default="report")
if JEDI_CHECK_OUTPUTS not in ("off", "report", "pause"):
    raise ImproperlyConfigured(f"JEDI_CHECK_OUTPUTS is {JEDI_CHECK_OUTPUTS!r}; it must be off, report or pause")
try:
    JEDI_LIMITS = {name: float(value) for name, value in env.dict("JEDI_LIMITS", default={}).items()}
except ValueError as exc:
    raise ImproperlyConfigured(f"JEDI_LIMITS must be a comma list of name=number: {exc}") from exc
JEDI_QUEUE_FLOOR = env.int("JEDI_QUEUE_FLOOR", default=100)
JEDI_ARCHIVE_AFTER_DAYS = env.int("JEDI_ARCHIVE_AFTER_DAYS", default=7)
JEDI_BULK_LIMIT = env.int("JEDI_BULK_LIMIT", default=1000)
JEDI_SERVER_URL = env.str("JEDI_SERVER_URL", default="").rstrip("/")
try:
    JEDI_OIDC = oidc_settings.read(env.str("JEDI_OIDC")) if env.str("JEDI_OIDC", default="") else {}
    JEDI_X509_PROXIES = [ip_network(address) for address in env.list("JEDI_X509_PROXIES", default=[])]
except ValueError as exc:
    raise ImproperlyConfigured(f"JEDI_OIDC or JEDI_X509_PROXIES: {exc}") from exc
JEDI_X509_HEADER = env.str("JEDI_X509_HEADER", default="")
if bool(JEDI_X509_HEADER) != bool(JEDI_X509_PROXIES):
    raise ImproperlyConfigured("JEDI_X509_HEADER and JEDI_X509_PROXIES must be set together")
JEDI_DEV_ISSUER = env.str("JEDI_DEV_ISSUER", default="")
if JEDI_DEV_ISSUER in JEDI_OIDC:
    raise ImproperlyConfigured(f"JEDI_DEV_ISSUER is {JEDI_DEV_ISSUER!r}, which already has an issuer in JEDI_OIDC")
if JEDI_DEV_ISSUER and not oidc_settings.VO_NAME.fullmatch(JEDI_DEV_ISSUER):
    raise ImproperlyConfigured(f"JEDI_DEV_ISSUER is {JEDI_DEV_ISSUER!r}; it must be the name of a VO, such as dev")
JEDI_PILOT = env.str("JEDI_PILOT", default="jedi")
if JEDI_PILOT not in ("jedi", "panda"):
    raise ImproperlyConfigured(f"JEDI_PILOT is {JEDI_PILOT!r}; it must be jedi or panda")
JEDI_PANDA_PILOT_DIR = env.str("JEDI_PANDA_PILOT_DIR", default="")
JEDI_TRANSFORM_URL = env.str("JEDI_TRANSFORM_URL", default="http://pandaserver-doma.cern.ch:25080/trf/user").rstrip("/")
JEDI_PAYLOAD_NETWORK = env.bool("JEDI_PAYLOAD_NETWORK", default=False)
JEDI_PAYLOAD_READS = env.list("JEDI_PAYLOAD_READS", default=[])
JEDI_STORAGE = JEDI_HOME / "storage"
"""Root of the local storage element LOCAL_SE."""
JEDI_SANDBOXES = JEDI_HOME / "sandboxes"
"""Archives with users' code, for their jobs."""
JEDI_SANDBOX_QUOTA_MB = env.int("JEDI_SANDBOX_QUOTA_MB", default=10_000)
JEDI_SANDBOX_DAYS = env.int("JEDI_SANDBOX_DAYS", default=30)


def _mail_server(url: str) -> dict[str, object]:
    """Django's settings of a mail server from its address."""
    try:
        return dict(env.email_url_config(url))
    except (ImproperlyConfigured, KeyError, ValueError):
        schemes = ", ".join(sorted(env.EMAIL_SCHEMES))
        raise ImproperlyConfigured(
            f"JEDI_EMAIL_URL is not the address of a mail server (it must begin with {schemes})"
        ) from None


SECRET_KEY = env.str("JEDI_SECRET_KEY", default="") or secret_key.kept_key(JEDI_HOME)
SECRET_KEY_FALLBACKS = env.list("JEDI_OLD_SECRET_KEYS", default=[])
DEBUG = env.bool("JEDI_DEBUG", default=False)
_OWN_HOST = urlsplit(JEDI_SERVER_URL).hostname
ALLOWED_HOSTS = env.list(
    "JEDI_ALLOWED_HOSTS", default=["127.0.0.1", "localhost", "[::1]", *([_OWN_HOST] if _OWN_HOST else [])]
)
CSRF_TRUSTED_ORIGINS = env.list("JEDI_CSRF_TRUSTED_ORIGINS", default=[])

INSTALLED_APPS = [
    "jedisite.account_commands",
    "unfold",
    "unfold.contrib.filters",
    "django.contrib.admin.apps.SimpleAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_q",
    "django_htmx",
    "jedisite",
    "brokerage_app",
    "tasks_app",
    "events_app",
]

MIDDLEWARE = [
    "jedisite.web.middleware.UnreadBodies",
    "jedisite.web.middleware.LongForms",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "jedisite.web.middleware.PrivateAnswers",
    "jedisite.web.middleware.ContentSecurityPolicy",
    "jedisite.web.middleware.ProblemsUnderApi",
    "jedisite.web.middleware.StatedLengths",
    "jedisite.web.middleware.DatabaseFaults",
    "jedisite.web.middleware.Throttled",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "jedisite.web.middleware.StorablePaths",
]
_FOR_PAGES = ("LongForms", "whitenoise", "Throttled", "sessions", "csrf", "auth", "messages", "htmx")
SHORT_MIDDLEWARE = [name for name in MIDDLEWARE if not any(part in name for part in _FOR_PAGES)]
"""What the calls pass that pilots make all the time: they come with tokens, never with sessions or cookies."""

ROOT_URLCONF = "jedisite.urls"
WSGI_APPLICATION = "jedisite.wsgi.application"
APPEND_SLASH = False
CSRF_FAILURE_VIEW = "jedisite.web.problems.csrf_failure"
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "tasks_app.web.frame.frame.frame",
            ],
        },
    },
]

try:
    JEDI_DATABASE_LIMITS = database_limits.merged(env.dict("JEDI_DATABASE_LIMITS", default={}))
except ValueError as exc:
    raise ImproperlyConfigured(f"JEDI_DATABASE_LIMITS must be a comma list of name=seconds: {exc}") from exc
try:
    JEDI_SLOW_CLIENTS = arrivals.merged(env.dict("JEDI_SLOW_CLIENTS", default={}))
except ValueError as exc:
    raise ImproperlyConfigured(f"JEDI_SLOW_CLIENTS must be a comma list of name=number: {exc}") from exc
try:
    DATABASES = {"default": env.db_url("DATABASE_URL", default="postgresql://127.0.0.1/jedisite")}
except (ValueError, ImproperlyConfigured):
    # What was raised may quote a part of the password.
    raise ImproperlyConfigured(
        "DATABASE_URL is not the address of a database, such as postgresql://name:password@host:5432/database; in a password, "
        "/ is written %2F, # %23, ? %3F, @ %40, and % %25"
    ) from None
DATABASES["default"].update(
    {
        "ENGINE": "django.db.backends.postgresql",
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {
            **DATABASES["default"].get("OPTIONS", {}),
            "prepare_threshold": 1,
            "application_name": "jedisite",
            "connect_timeout": round(JEDI_DATABASE_LIMITS["connect"]),
        },
    }
)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTHENTICATION_BACKENDS = ["jedisite.identity.session_users.UsersWithGroups"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

JEDI_EMAIL_URL = env.str("JEDI_EMAIL_URL", default="")
DEFAULT_FROM_EMAIL = SERVER_EMAIL = env.str("JEDI_EMAIL_FROM", default="jedi@localhost")
EMAIL_TIMEOUT = 20
EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
if JEDI_EMAIL_URL:
    globals().update(_mail_server(JEDI_EMAIL_URL))

LANGUAGE_CODE = "en-gb"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = JEDI_HOME / "static"
WHITENOISE_USE_FINDERS = True
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}

CACHES = {"default": {"BACKEND": "django.core.cache.backends.db.DatabaseCache", "LOCATION": "django_cache"}}

DATA_UPLOAD_MAX_MEMORY_SIZE = 10 * 1024 * 1024
FILE_UPLOAD_HANDLERS: list[str] = []
"""Files in forms are ignored, and not written anywhere, but by the call that takes sandboxes."""
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
JEDI_HTTPS = env.bool("JEDI_HTTPS", default=JEDI_SERVER_URL.startswith("https://"))
try:
    JEDI_PROXIES = [
        ip_network(text) for text in env.list("JEDI_PROXIES", default=["127.0.0.0/8", "::1"] if JEDI_HTTPS else [])
    ]
except ValueError as exc:
    raise ImproperlyConfigured(f"JEDI_PROXIES must be a comma list of addresses or networks: {exc}") from exc
if JEDI_HTTPS:
    _HEADER = env.str("JEDI_HTTPS_HEADER", default="X-Forwarded-Proto")
    SECURE_PROXY_SSL_HEADER = (f"HTTP_{_HEADER.upper().replace('-', '_')}", "https")
    # Under `up`, whose own address is plain, the pilots of this machine call past the proxy.
    SECURE_SSL_REDIRECT = not JEDI_SERVER_URL.startswith("http://")
    SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz)$"]  # probes come from inside, without the proxy
    SECURE_HSTS_SECONDS = env.int("JEDI_HSTS_S", default=31_536_000)
    SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
# Whether all hosts below ours speak https, and whether browsers ship with that, is not ours to say.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "jedisite.identity.callers.TokenAuthentication",
        "jedisite.identity.callers.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["jedisite.identity.callers.HasRight"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["jedisite.web.problems.StrictJSONParser"],
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_PAGINATION_CLASS": "jedisite.web.paging.KeysetPagination",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_METADATA_CLASS": "jedisite.web.methods.Methods",
    "URL_FORMAT_OVERRIDE": None,
    "EXCEPTION_HANDLER": "jedisite.web.problems.exception_handler",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "jedisite",
    "DESCRIPTION": "Tasks, jobs and everything around them as resources, and the calls of PanDA's clients and pilots.",
    "VERSION": "2",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/(api/v2|api/v1|server/panda)",
    "PREPROCESSING_HOOKS": ["jedisite.web.openapi.only_interfaces"],
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "jedisite.web.openapi.add_problems",
        "jedisite.web.openapi.resources_first",
        "tasks_app.api.v2.examples.add_examples",
    ],
    "PATH_CONVERTER_OVERRIDES": {"bigint": int},
    "ENUM_NAME_OVERRIDES": {
        "TaskStatus": "tasks_app.api.v2.choices.TASK_STATUS",
        "DatasetStatus": "tasks_app.api.v2.choices.DATASET_STATUS",
        "FileStatus": "tasks_app.api.v2.choices.FILE_STATUS",
        "JobStatus": "tasks_app.api.v2.choices.JOB_STATUS",
        "ReportedJobStatus": "tasks_app.api.panda.pilot_calls.STATES",
        "QueueStatus": "tasks_app.api.v2.choices.QUEUE_STATUS",
        "TransferStatus": "tasks_app.api.v2.choices.TRANSFER_STATUS",
        "TaskCommand": "tasks_app.api.v2.choices.TASK_COMMAND",
        "WorkflowState": "tasks_app.api.v2.choices.WORKFLOW_STATE",
        "PackageStatus": "tasks_app.api.v2.choices.PACKAGE_STATUS",
    },
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}

# django-q2's defaults repeat work for ever; here a pass is tried once, and the agents' own table says when again.
Q_CLUSTER = {
    "name": "jedi",
    "orm": "default",
    "broker_class": "jedisite.agents.pass_queue.PassQueue",
    "workers": env.int("JEDI_WORKERS", default=4),
    "queue_limit": 8,
    "bulk": 1,
    "poll": 0.1,
    "timeout": 300,
    "retry": 900,
    "ack_failures": True,
    "max_attempts": 1,
    "catch_up": False,
    "save_limit": -1,
    "recycle": 1000,
    "guard_cycle": 1,
    "label": "Scheduled agents",
}

UNFOLD = {
    "SITE_TITLE": "jedisite",
    "SITE_HEADER": "jedisite",
    "SITE_URL": "/",
    "STYLES": [f"{STATIC_URL}css/admin.css"],
}

LOGGING = log_setup.set_up(env.str("JEDI_LOG_LEVEL", default="INFO"), as_json=env.bool("JEDI_LOG_JSON", default=False))
