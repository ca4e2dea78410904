"""PanDA's own interface: what prun, pbook, PanDA's pilots and harvester call, byte for byte as they expect it.

`wire.py` reads bodies and writes answers, `params.py` has the kinds of parameters, `calls.py` makes a view of a function;
each other file has the calls of one of PanDA's modules. `urls.py` names those files; a call is known by being there.
"""
