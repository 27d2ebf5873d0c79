"""Requests of a person and steps of an agent, each with a word that identifies it.

They are usual requests to coding agents, written without regard to the evaluation sets.
"""

REQUESTS = [
    ("Please add a retry with backoff to the uploader and cover it with a test.", "uploader"),
    ("Fix the parser so that empty quotes are allowed.", "parser"),
    ("Rename the invoices page to billing and keep the old address working.", "invoices"),
    ("The importer loses the last row of a CSV file; find out why and fix it.", "importer"),
    ("Write a migration that drops the unused column legacy_rank from players.", "legacy_rank"),
    ("Make the thumbnails lazy, the gallery takes nine seconds to load.", "thumbnails"),
    ("Upgrade Django to 5.2 and fix the deprecation warnings in accounts/.", "deprecation"),
    ("Split src/report.py, it has grown to two thousand lines.", "src/report.py"),
    ("Document the three ways to configure the proxy in the README.", "proxy"),
    ("Can you look into the flaky test test_reconnect and make it stable?", "test_reconnect"),
    ("Replace the hand-written cache with functools.lru_cache everywhere.", "lru_cache"),
    ("I want the nightly export to skip archived customers.", "archived"),
    ("Port the shell scripts in tools/ to Python, one commit each.", "shell"),
    ("Add French translations for the checkout screens.", "French"),
    ("Bump the minimum Node version to 22 and update the workflow.", "Node"),
    ("Let the search box ignore accents, users cannot find Müller.", "accents"),
    ("Profile the startup and get it under 300 milliseconds.", "startup"),
    ("Delete the feature flag new_sidebar, it has been on for a year.", "new_sidebar"),
    ("The map jumps when one zooms with the trackpad. Fix that, please.", "trackpad"),
    ("Set up a pre-commit hook that runs ruff.", "pre-commit"),
    ("Store durations as integers of milliseconds instead of floats.", "durations"),
    ("Send the weekly digest on Mondays instead of Sundays.", "digest"),
    ("Restrict the admin routes to the office network.", "admin"),
    ("Give the command line tool a --json option for scripts.", "--json"),
    ("Check whether the licence headers are complete and add missing ones.", "licence"),
    ("Move the session tokens from local storage to a cookie.", "cookie"),
    ("Back up the postgres volume before you touch the schema.", "postgres"),
    ("Draw the chart with the colours of the style guide.", "chart"),
    ("Reduce the docker image below 200 MB, use a slim base.", "docker"),
    ("Read the RFC draft in docs/rfc-12.md and implement section four.", "docs/rfc-12.md"),
    ("Bitte den Kalender auf Wochenansicht umstellen und Feiertage anzeigen.", "Feiertage"),
    ("Ajoute une page de contact avec un formulaire et une carte.", "formulaire"),
    ("Teach the linter about our naming rule for signals.", "signals"),
    ("Whenever a payment fails, tell the customer why in plain words.", "payment"),
    ("Compare both queue libraries and recommend one, no code yet.", "queue"),
    ("Hide prices for visitors who are not logged in.", "prices"),
    ("Turn the tutorial into a notebook that runs in CI.", "notebook"),
    ("Undo the last refactoring of the scheduler, it broke pausing.", "scheduler"),
    ("Add keyboard shortcuts for undo and redo to the editor.", "shortcuts"),
    ("Raise the coverage of the billing module to ninety percent.", "coverage"),
]

STEPS = [
    (
        "The reader handles quotes now. Next I will port the exporter to the same reader.",
        "exporter",
        ("Bash", "pytest tests/test_reader.py", "3 passed in 0.12s"),
    ),
    (
        "Two assertions fail in the rounding code. I am going to switch money.py to Decimal.",
        "Decimal",
        (
            "Bash",
            "pytest tests/test_money.py",
            "FAILED tests/test_money.py::test_rounding - assert 0.31 == 0.3\n1 failed, 8 passed",
        ),
    ),
    (
        "We keep the old endpoint for one release, because mobile clients still call it.",
        "endpoint",
        ("Bash", "git grep -n v1/orders", "api/routes.py:41: router.add('/v1/orders', orders)"),
    ),
    (
        "I decided to store times in UTC, since the two offices disagree about daylight saving.",
        "UTC",
        ("Read", "settings.py", "TIME_ZONE = 'Europe/Paris'\nUSE_TZ = False"),
    ),
    (
        "What remains is the retry of the webhook and its documentation.",
        "webhook",
        ("Edit", "src/hooks/send.py", "The file has been updated."),
    ),
    (
        "The build is slow because of the fonts; I will subset them after the icons are done.",
        "fonts",
        ("Bash", "npm run build", "dist/assets/inter.woff2 1,204 kB\nbuilt in 41.2s"),
    ),
    (
        "Before the merge the owner has to confirm that the index may be rebuilt at night.",
        "rebuilt",
        ("Bash", "psql -c '\\d orders'", "Indexes: orders_pkey PRIMARY KEY, btree (id)"),
    ),
    (
        "Now the worker needs the same guard as the web process, then I can remove the lock.",
        "guard",
        ("Edit", "src/worker.py", "The file has been updated."),
    ),
    (
        "I will bisect the memory growth next; the heap snapshots are in tmp/heaps.",
        "bisect",
        ("Bash", "ls tmp/heaps", "a.heapsnapshot\nb.heapsnapshot"),
    ),
    (
        "The flaky test waits for a port. I'll use a readiness probe in tests/conftest.py instead.",
        "readiness",
        (
            "Read",
            "tests/conftest.py",
            "def server():\n    start()\n    time.sleep(2)  # wait for the port\n    yield",
        ),
    ),
]
