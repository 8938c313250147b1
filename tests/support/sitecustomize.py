"""Python runs this in the children of tests, in whose PYTHONPATH this folder is: they see the described host, too."""

import described_host

described_host.install()
