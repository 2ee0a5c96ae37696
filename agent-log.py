#!/usr/bin/env python3
"""The older spelling of agentlog.py, kept for service commands that name it."""

import os
import runpy

runpy.run_path(os.path.join(os.path.dirname(os.path.realpath(__file__)), "agentlog.py"), run_name="__main__")
