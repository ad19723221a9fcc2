import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./load.mjs";

const { api, ApiError, isAbort } = await load("lib/api.ts");
let asked;

/** Answers the next calls, and keeps what was asked. */
function answer(status, body, headers = {}) {
  globalThis.fetch = async (url, options) => {
    asked = { url, ...options };
    return new Response(status === 204 ? null : body, { status, headers });
  };
}

const failing = async (call) => call.then(() => assert.fail("it did not fail"), (error) => error);

test("a query leaves out what is not given, and names are escaped", async () => {
  answer(200, "{}");
  await api.conversations({ search: "a b&c", limit: 50 });
  assert.equal(asked.url, "/conversations?search=a+b%26c&limit=50");
  await api.epoch("a/b", 2);
  assert.equal(asked.url, "/conversations/a%2Fb/epochs/2");
  await api.reload("c", true);
  assert.deepEqual([asked.url, asked.method, asked.body], ["/conversations/c/reload?plan=true", "POST", undefined]);
  assert.equal(asked.headers["content-type"], "application/json");
});

test("the token goes into a header and nowhere else", async () => {
  answer(204);
  assert.equal(await api.session("secret"), undefined);
  assert.equal(asked.headers.authorization, "Bearer secret");
  assert.ok(!asked.url.includes("secret") && asked.body === undefined);
});

test("an error of the server keeps its code, hint and pause", async () => {
  answer(503, '{"code":"busy","message":"too much","hint":"wait"}', { "retry-after": "7" });
  const error = await failing(api.template());
  assert.ok(error instanceof ApiError);
  const { status, code, message, hint, retryAfter } = error;
  assert.deepEqual([status, code, message, hint, retryAfter], [503, "busy", "too much", "wait", 7]);
});

test("what is not proem's answer is an error with its status", async () => {
  answer(502, "<html>Bad gateway</html>");
  assert.deepEqual([(await failing(api.template())).status, (await failing(api.template())).code], [502, "bad_answer"]);
  answer(200, "<html>Sign in</html>");
  assert.equal((await failing(api.template())).code, "bad_answer");
});

test("no answer is offline, and a given-up call stays an abort", async () => {
  globalThis.fetch = async () => { throw new TypeError("Failed to fetch"); };
  const error = await failing(api.template());
  assert.deepEqual([error.status, error.code], [0, "offline"]);
  globalThis.fetch = async () => { throw new DOMException("given up", "AbortError"); };
  assert.ok(isAbort(await failing(api.template())));
});
