"""Has Amazon's own library look for keys, and prints which it found.

    python find_keys.py cases.json

The file is a list of {"variables": {...}, "credentials": "...", "config": "..."}: the environment, and the text of the
two files in the home folder. The answers are lists of where the keys came from and, if they were there, their id.
"""

import json
import os
import sys
import tempfile

import botocore.session


def found(case):
    with tempfile.TemporaryDirectory() as home:
        os.mkdir(os.path.join(home, ".aws"))
        for name in ("credentials", "config"):
            if name in case:
                with open(os.path.join(home, ".aws", name), "w") as file:
                    file.write(case[name])
        kept = dict(os.environ)
        os.environ.clear()
        # No machine of Amazon's is asked for its own keys.
        os.environ.update({"HOME": home, "AWS_EC2_METADATA_DISABLED": "true", "PATH": kept.get("PATH", "")})
        os.environ.update(case["variables"])
        try:
            keys = botocore.session.Session().get_credentials()
            if keys is None:
                return ["none"]
            # Keys of roles and sign-ons are fetched when they are needed, which is not now.
            held = keys.method in ("env", "shared-credentials-file", "config-file")
            return ["given", keys.access_key, keys.token] if held else [keys.method]
        except Exception as error:
            return ["error", type(error).__name__]
        finally:
            os.environ.clear()
            os.environ.update(kept)


json.dump([found(case) for case in json.load(open(sys.argv[1]))], sys.stdout)
