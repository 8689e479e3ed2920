// Drives a server with the TypeScript SDK's client, answers what it asks, and prints what came of it as JSON.
// Arguments: the folder with the packages, the revision (`session` for the package of the era of sessions), the program.
import { createRequire } from "node:module";

const [home, pin, command, ...args] = process.argv.slice(2);
const require = createRequire(`${home}/package.json`);
const sessions = pin === "session";
const { Client } = sessions ? require("@modelcontextprotocol/sdk/client/index.js") : require("@modelcontextprotocol/client");
const { StdioClientTransport } = sessions
  ? require("@modelcontextprotocol/sdk/client/stdio.js")
  : require("@modelcontextprotocol/client/stdio");
const negotiation = sessions ? {} : { versionNegotiation: { mode: { pin } } };
const capabilities = { elicitation: { form: {} } };
const client = new Client({ name: "sdk", version: "1" }, { capabilities, ...negotiation });
const asked = [];
const replies = [
  { action: "accept", content: { name: "Ada", age: 36, colour: "blue", member: true } },
  { action: "decline" },
];
const answer = async (request) => {
  asked.push(request.params.message);
  return replies.shift();
};
if (sessions) {
  const { ElicitRequestSchema } = require("@modelcontextprotocol/sdk/types.js");
  client.setRequestHandler(ElicitRequestSchema, answer);
} else {
  client.setRequestHandler("elicitation/create", answer);
}
await client.connect(new StdioClientTransport({ command, args, stderr: "ignore" }));
const { tools } = await client.listTools();
const greet = tools.find((tool) => tool.name.endsWith("greet")).name;
const greeted = [];
for (let count = 0; count < 2; count += 1) {
  greeted.push((await client.callTool({ name: greet, arguments: {} })).content[0].text);
}
console.log(JSON.stringify({ asked, greeted }));
await client.close();
