// Drives a server with the TypeScript SDK's client and prints what it saw as JSON.
// Arguments: the folder with the packages, the server's address, a file that the cancelled call writes, and the revision:
// without one the package of the era of sessions is used, else the newer package, which speaks exactly that.
import { createRequire } from "node:module";

const [home, url, witness, pin] = process.argv.slice(2);
const require = createRequire(`${home}/package.json`);
const older = () => ({
  ...require("@modelcontextprotocol/sdk/client/index.js"),
  ...require("@modelcontextprotocol/sdk/client/streamableHttp.js"),
});
const { Client, StreamableHTTPClientTransport } = pin ? require("@modelcontextprotocol/client") : older();

const negotiation = pin ? { versionNegotiation: { mode: { pin } } } : {};
const client = new Client({ name: "sdk", version: "1" }, { capabilities: {}, ...negotiation });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const call = (name, args = {}, options) => {
  const params = { name, arguments: args };
  return pin ? client.callTool(params, options) : client.callTool(params, undefined, options);
};
const seen = {};
seen.tools = (await client.listTools()).tools.length > 30;
seen.text = (await call("test_simple_text")).content[0].text;
seen.image = (await call("test_image_content")).content[0].mimeType;
seen.structured = (await call("add", { x: 1, y: 2 })).structuredContent;
seen.error = (await call("test_error_handling")).isError;
seen.progress = [];
await call("test_tool_with_progress", {}, { onprogress: (p) => seen.progress.push(p.progress) });
try {
  await call("wait", { seconds: 600, witness }, { timeout: 2000 });
  seen.cancel = false;
} catch {
  seen.cancel = true;
}
seen.after = (await call("wait", { seconds: 1 })).content[0].text;
seen.resource = (await client.readResource({ uri: "test://static-text" })).contents[0].text;
seen.prompt = (await client.getPrompt({ name: "test_simple_prompt" })).messages[0].content.text;
console.log(JSON.stringify(seen));
await client.close();
await client.close();
