// Types of what programs and plugins in JavaScript find as globals, beside those of the language (ES2023). A plugin is
// a module whose exports are its tools: `export function greet(params, context)`, or for the tool issue.list
// `export const issue = { list(params, context) {..} }`. A tool returns JSON, or a promise of it. An integer beyond 2^53
// is a bigint, in parameters and in what calls return; a bigint that is returned or passed on is written as its digits.

/** What a tool is given beside its parameters. */
interface ParleyContext {
  call_id: string;
  session: string;
  caller: string;
  host: string;
  deadline_ms: number;
  /** Set by the operator, as the manifest's settings describe them. */
  settings: Record<string, unknown>;
  granted: {
    fs: { path: string; mode: "ro" | "rw" }[];
    http: string[];
    tools: string[];
    secrets: string[];
    env: string[];
    browser: boolean;
    clock: boolean;
    random: boolean;
  };
}

/** Options of a call of a tool. */
interface ParleyOptions {
  timeout?: string;
  jq?: string;
  browser?: string;
  target?: string;
  wait?: "load" | "idle" | "none";
  dry_run?: boolean;
}

/** A function for each tool, such as tools.text.hash or tools.cdp.Page.navigate. */
interface ParleyTools {
  (params?: object, options?: ParleyOptions): Promise<any>;
  [name: string]: ParleyTools;
}

interface ParleyResponse {
  status: number;
  /** Whether the status is from 200 to 299. */
  ok: boolean;
  headers: [name: string, value: string][];
  header(name: string): string | undefined;
  text(): string;
  json(): any;
  bytes(): Uint8Array;
}

/** The error of a call: what the host says about it. */
declare class ToolError extends Error {
  code: string;
  exit_code: number;
  details?: { parameter: string; keyword: string; expected?: string; provided?: string }[];
  /** Parameters that would be valid. */
  corrected?: object;
  docs?: object;
}

declare const tools: ParleyTools;

declare const parley: {
  /** Calls a tool. Calls that are awaited together, as with Promise.all, run at once. */
  call(tool: string, params?: object, options?: ParleyOptions): Promise<any>;
  tools: ParleyTools;
  ToolError: typeof ToolError;
  /** Thrown by a tool, ends it with an exit code that the manifest declares. */
  Exit: new (exit: number, message?: string, details?: object) => Error;
  /** Thrown by a tool, rejects a parameter: a pointer such as "/repo", what was expected, and what was given. */
  Invalid: new (pointer: string, expected: string, provided?: string, suggestion?: string) => Error;
  http(request: string | URL | {
    url: string | URL;
    method?: string;
    headers?: Record<string, string> | [name: string, value: string][];
    /** A text, bytes, or a value that is sent as JSON. */
    body?: unknown;
  }): Promise<ParleyResponse>;
  /** Returns a secret that the manifest asks to read. */
  secret(name: string): Promise<string>;
  log(message: unknown, level?: "debug" | "info" | "warn" | "error"): void;
  progress(done: number, total?: number, message?: string): void;
  /** Adds a warning to the result. */
  warn(message: unknown): void;
  /** Adds an image to the result. A text is base64. */
  image(data: string | ArrayBuffer | ArrayBufferView, mime?: string): void;
  /** Adds blocks of content to the result. */
  show(...content: { type: "text" | "image" | "audio" | "resource" | "link"; text?: string; data?: string; mime?: string; uri?: string }[]): void;
};
