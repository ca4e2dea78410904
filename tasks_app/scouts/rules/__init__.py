"""The number of scouts, what they measured, and the verdict. Pure."""
