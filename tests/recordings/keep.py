"""A hook that stores its payload in the file that it is named.

python -I -S keep.py FILE HARNESS EVENT[:SOURCE]
"""

import os
import sys

payload = b"".join(iter(lambda: os.read(0, 1 << 20), b"")).replace(b"\n", b" ")
kept = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
os.write(kept, sys.argv[3].encode() + b" " + payload + b"\n")
