"""P15: what a small server in Python would be. `python server.py FILE` answers every turn with the file's text."""

import json
import pathlib
import socket
import sys

import fastapi
import uvicorn

SYSTEM = json.loads(pathlib.Path(sys.argv[1]).read_text())["carriers"]["system"]
PROMPTS = {"c": SYSTEM}
app = fastapi.FastAPI()


@app.post("/conversations/{conversation}/turn")
async def turn(conversation: str, request: dict):
    return {"conversation": conversation, "carriers": {"system": PROMPTS.get(conversation, SYSTEM)}}


listener = socket.create_server(("127.0.0.1", 0))
print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])
