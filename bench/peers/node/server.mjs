// P15: what a small server in node would be. `node server.mjs FILE` answers every turn with the file's text.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";

const { system } = JSON.parse(readFileSync(process.argv[2], "utf8")).carriers;
const prompts = new Map([["c", system]]);

const server = createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8");
  request.on("data", (piece) => (body += piece));
  request.on("end", () => {
    if (body) JSON.parse(body);
    const id = request.url.split("/")[2];
    const text = JSON.stringify({ conversation: id, carriers: { system: prompts.get(id) ?? system } });
    response.writeHead(200, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text) });
    response.end(text);
  });
});
server.listen(0, "127.0.0.1", () => console.log(`listening on http://127.0.0.1:${server.address().port}`));
