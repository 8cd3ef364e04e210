// node kits.mjs KIT COMMAND TOOL PARAMS calls a tool of `COMMAND mcp --docs full` with a kit that agents are made with,
// and prints what it returns.
const [kit, command, tool, params] = process.argv.slice(2);
const server = { command, args: ["mcp", "--docs", "full"], env: process.env };
const name = tool.replaceAll(".", "__");
const input = JSON.parse(params);

const kits = {
  async "ai-sdk"() {
    const { createMCPClient } = await import("@ai-sdk/mcp");
    const { Experimental_StdioMCPTransport: Stdio } = await import("@ai-sdk/mcp/mcp-stdio");
    const client = await createMCPClient({ transport: new Stdio(server) });
    const tools = await client.tools();
    return [client, await tools[name].execute(input, { toolCallId: "1", messages: [] })];
  },
  async "openai-agents"() {
    const { MCPServerStdio } = await import("@openai/agents-core");
    const client = new MCPServerStdio(server);
    await client.connect();
    return [client, await client.callTool(name, input)];
  },
  async langchain() {
    const { MultiServerMCPClient } = await import("@langchain/mcp-adapters");
    const client = new MultiServerMCPClient({ mcpServers: { parley: { transport: "stdio", ...server } } });
    const tools = await client.getTools();
    return [client, await tools.find((t) => t.name === name).invoke(input)];
  },
};
const [client, result] = await kits[kit]();
console.log(JSON.stringify(result));
await client.close();
