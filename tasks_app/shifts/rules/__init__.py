"""What a shift's page and report say, made of plain values.

Pure: no database and no clock.
"""
