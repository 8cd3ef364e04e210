// The JavaScript half of the plugin. build.mjs evaluates this file once, when the plugin is built: it is a function of
// the host function of shim.wat, and returns `turn`, which the shim calls with each text of the host. Programs see what
// it puts on globalThis and nothing else.
(host) => {
  // Integers that a number cannot hold are BigInts in programs, so that no digit is lost on the way in or out. One of
  // the host has at most 400 digits, also as 1e399, which would be Infinity.
  const exact = (_, v, { source }) => {
    if (typeof v !== "number" || Number.isSafeInteger(v)) return v;
    if (/^-?\d+$/.test(source)) return BigInt(source);
    const [, whole, fraction = "", exponent] = (Number.isFinite(v) ? null : /^(-?\d+)(?:\.(\d+))?e\+?(\d{3})$/i.exec(source)) ?? [];
    return exponent > fraction.length ? BigInt(whole + fraction + "0".repeat(exponent - fraction.length)) : v;
  };
  const { parse: parseJSON, stringify: stringifyJSON, rawJSON } = JSON;
  // A reviver doubles the time, so only texts with that many digits in a row, or such an exponent, get it.
  const parse = (text) => /\d{16}|[eE]\+?\d{3}/.test(text) ? parseJSON(text, exact) : parseJSON(text);
  // Half of a surrogate pair is no character: JSON has it as an escape, which the host refuses. It becomes U+FFFD, as
  // TextEncoder makes it.
  let halves = false; // a text had one
  const wellFormed = (json) => /\\ud[89a-f]/.test(json) ? json.replace(/\\(?:\\|ud[89a-f]..)/g, (escape) => {
    if (escape === "\\\\") return escape;
    halves = true;
    return "\ufffd";
  }) : json;
  const stringify = (value) => {
    try {
      return wellFormed(stringifyJSON(value));
    } catch (e) {
      if (!/bigint/i.test(e?.message)) throw e;
      return wellFormed(stringifyJSON(value, (_, v) => typeof v === "bigint" ? rawJSON(String(v)) : v));
    }
  };
  const random = () => host(0);
  const sleep = (ms) => host(1, ms);
  const ask = (op, request) => {
    const reply = parse(host(op, stringify(request)));
    if (reply.ok) return reply.result;
    throw new ToolError(reply.error);
  };
  const evaluate = (text, file, flags) => host(6, text, file, flags);
  const asModule = 1, strict = 8;

  // ---- errors

  /** The error of a call: what the host says about it, with its code, exit_code, details, docs, corrected and so on. */
  class ToolError extends Error {
    constructor(error) {
      super(error?.message ?? "the call failed");
      const { message, ...rest } = error ?? {};
      Object.assign(this, rest);
    }
  }
  Object.defineProperty(ToolError.prototype, "name", { value: "ToolError", configurable: true });

  /** Ends a tool of a script with an exit code that its manifest declares. */
  class Exit extends Error {
    constructor(exit, message, details) {
      super(message);
      Object.assign(this, { exit, details });
    }
  }
  /** Rejects parameters that are valid by the schema. */
  class Invalid extends Error {
    constructor(pointer, expected, provided, suggestion) {
      super(`${pointer}: expected ${expected}`);
      this.invalid = [{ pointer, expected, provided, suggestion }];
    }
  }

  // ---- one call: its file, what it waits for, what it shows

  let file, source, indent; // of the program; indent is what the wrapper puts before the first line
  let response; // undefined until the call has ended
  let asked = []; // calls that the host has not been asked for yet
  const waiting = new Map(); // id -> [resolve, reject]
  let ids = 0;
  const timers = new Map(); // id -> {due, f, args, every}
  let content = [], warnings = [], lines = [], dropped = 0;

  const text = (v) => {
    if (typeof v === "string") return v;
    if (v instanceof Error) return place(v) ? `${v.name}: ${v.message} (${place(v).at})` : `${v.name}: ${v.message}`;
    if (typeof v === "bigint" || typeof v === "symbol" || typeof v === "function") return String(v);
    try {
      return stringify(v) ?? String(v);
    } catch {
      return Object.prototype.toString.call(v);
    }
  };
  const clip = (s, n) => s.length <= n ? s : s.slice(0, n - 1).replace(/[\uD800-\uDBFF]$/, "") + "…";

  const call = (tool, params, options) => new Promise((resolve, reject) => {
    const id = ++ids;
    waiting.set(id, [resolve, reject, new Error().stack]); // the call is where its error is
    asked.push({ id, tool: String(tool), params: params ?? {}, options });
  });

  // tools.cdp.Page.navigate is the function of that name. A name does not exist until it is called.
  const named = (name) => new Proxy(() => {}, {
    get: (_, key) => typeof key === "symbol" || name === "" && key === "then" ? undefined : named(name ? `${name}.${key}` : key),
    apply: (_, __, [params, options]) => call(name, params, options),
  });

  const base64 = (data) => typeof data === "string" ? data
    : data instanceof ArrayBuffer ? new Uint8Array(data).toBase64()
    : ArrayBuffer.isView(data) ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength).toBase64()
    : base64(String(data?.data ?? data));

  const http = async (request) => {
    const q = typeof request === "string" || request instanceof URL ? { url: String(request) } : { ...request, url: String(request.url) };
    if (q.headers && !Array.isArray(q.headers)) q.headers = Object.entries(q.headers).map(([k, v]) => [k, String(v)]);
    if (q.body instanceof ArrayBuffer || ArrayBuffer.isView(q.body)) {
      q.body_base64 = base64(q.body);
      delete q.body;
    } else if (q.body !== undefined && typeof q.body !== "string") {
      q.body = stringify(q.body);
      if (!q.headers?.some(([k]) => k.toLowerCase() === "content-type")) {
        q.headers = [...(q.headers ?? []), ["content-type", "application/json"]];
      }
    }
    const { status, headers, body, body_base64 } = ask(2, q);
    const bytes = () => body === undefined ? Uint8Array.fromBase64(body_base64 ?? "") : new TextEncoder().encode(body);
    const whole = () => body ?? new TextDecoder().decode(bytes());
    return {
      status, ok: status >= 200 && status < 300, headers,
      header: (name) => headers.find(([k]) => k.toLowerCase() === name.toLowerCase())?.[1],
      text: whole, json: () => parseJSON(whole()), bytes,
    };
  };

  const levels = ["debug", "info", "warn", "error"];
  const log = (level, message) => void host(4, clip(message, 2000), Math.max(levels.indexOf(level), 0));
  const tools = named("");
  const parley = Object.freeze({
    call, tools, ToolError, Exit, Invalid, http,
    secret: async (name) => ask(3, { name }),
    log: (message, level = "info") => log(level, text(message)),
    progress: (done, total = 0, message = "") => void host(5, String(message), +done, +total),
    warn: (message) => void warnings.push(text(message)),
    show: (...blocks) => void content.push(...blocks),
    image: (data, mime = "image/png") => void content.push({ type: "image", data: base64(data), mime }),
  });

  // ---- globals

  // The console goes to the host's log. A program's last lines also come back with its result.
  const keptLines = 40, keptText = 4000;
  const write = (level) => (...args) => {
    const line = args.map(text).join(" ");
    log(level, line);
    lines.push(clip(level === "info" ? line : `${level}: ${line}`, 500));
    let size = lines.reduce((n, l) => n + l.length, 0);
    while (lines.length > keptLines || size > keptText) {
      size -= lines.shift().length;
      dropped++;
    }
  };
  const timer = (f, ms, every, args) => {
    if (typeof f !== "function") throw new TypeError("the first argument must be a function");
    const id = ++ids;
    ms = Math.max(+ms || 0, 0);
    timers.set(id, { due: performance.now() + ms, f, args, every: every ? Math.max(ms, 1) : 0 });
    return id;
  };
  const clear = (id) => void timers.delete(id);

  class TextEncoder {
    get encoding() { return "utf-8"; }
    encode(input = "") {
      const s = String(input).toWellFormed(), out = new Uint8Array(s.length * 3);
      let n = 0;
      for (let i = 0; i < s.length; i++) {
        let c = s.charCodeAt(i);
        if (c < 0x80) {
          out[n++] = c;
          continue;
        }
        if (c >= 0xd800 && c < 0xdc00) c = 0x10000 + ((c - 0xd800) << 10) + s.charCodeAt(++i) - 0xdc00;
        if (c < 0x800) out[n++] = 0xc0 | c >> 6;
        else {
          if (c < 0x10000) out[n++] = 0xe0 | c >> 12;
          else out[n++] = 0xf0 | c >> 18, out[n++] = 0x80 | c >> 12 & 63;
          out[n++] = 0x80 | c >> 6 & 63;
        }
        out[n++] = 0x80 | c & 63;
      }
      return out.slice(0, n);
    }
    encodeInto(input, into) {
      let read = 0, written = 0;
      for (const c of String(input)) {
        const bytes = this.encode(c);
        if (written + bytes.length > into.length) break;
        into.set(bytes, written);
        written += bytes.length;
        read += c.length;
      }
      return { read, written };
    }
  }

  class TextDecoder {
    #rest = [];
    constructor(label = "utf-8", { fatal = false, ignoreBOM = false } = {}) {
      if (!/^\s*(unicode-1-1-)?utf-?8\s*$/i.test(label)) throw new RangeError(`TextDecoder knows only utf-8, not "${label}"`);
      Object.assign(this, { encoding: "utf-8", fatal, ignoreBOM });
    }
    decode(input = new Uint8Array(), { stream = false } = {}) {
      let b = input instanceof ArrayBuffer ? new Uint8Array(input) : new Uint8Array(input.buffer, input.byteOffset, input.byteLength);
      if (this.#rest.length) b = Uint8Array.from([...this.#rest, ...b]);
      this.#rest = [];
      const parts = [];
      let units = [];
      const bad = () => {
        if (this.fatal) throw new TypeError("the bytes are not valid UTF-8");
        units.push(0xfffd);
      };
      for (let i = 0; i < b.length;) {
        const c = b[i];
        if (units.length > 4096) parts.push(String.fromCharCode(...units)), units = [];
        if (c < 0x80) {
          units.push(c);
          i++;
          continue;
        }
        const n = c >= 0xc2 && c < 0xe0 ? 1 : c >= 0xe0 && c < 0xf0 ? 2 : c >= 0xf0 && c < 0xf5 ? 3 : 0;
        const low = c === 0xe0 ? 0xa0 : c === 0xf0 ? 0x90 : 0x80, high = c === 0xed ? 0x9f : c === 0xf4 ? 0x8f : 0xbf;
        let point = c & 0x3f >> n, k = 1;
        for (; k <= n && i + k < b.length; k++) {
          const d = b[i + k];
          if (k === 1 ? d < low || d > high : d >> 6 !== 2) break;
          point = point << 6 | d & 63;
        }
        if (stream && n > 0 && k <= n && i + k === b.length) {
          this.#rest = [...b.subarray(i)];
          break;
        }
        if (n === 0 || k <= n) bad();
        else if (point < 0x10000) units.push(point);
        else units.push(0xd800 + (point - 0x10000 >> 10), 0xdc00 + (point & 0x3ff));
        i += n === 0 ? 1 : k;
      }
      const out = parts.join("") + String.fromCharCode(...units);
      return !this.ignoreBOM && out[0] === "\ufeff" ? out.slice(1) : out;
    }
  }

  const structuredClone = (value) => {
    const seen = new Map();
    const refuse = (what) => { throw new DOMException(`${what} cannot be cloned`, "DataCloneError"); };
    const copy = (v) => {
      if (typeof v === "function" || typeof v === "symbol") refuse(`a ${typeof v}`);
      if (typeof v !== "object" || v === null) return v;
      if (seen.has(v)) return seen.get(v);
      const keep = (c) => (seen.set(v, c), c);
      if (v instanceof Date) return keep(new Date(+v));
      if (v instanceof RegExp) return keep(new RegExp(v.source, v.flags));
      if (v instanceof ArrayBuffer) return keep(v.slice(0));
      if (v instanceof DataView) return keep(new DataView(copy(v.buffer), v.byteOffset, v.byteLength));
      if (ArrayBuffer.isView(v)) return keep(new v.constructor(copy(v.buffer), v.byteOffset, v.length));
      if (v instanceof Boolean || v instanceof Number || v instanceof String || v instanceof BigInt) return keep(Object(v.valueOf()));
      if (v instanceof Map) {
        const c = keep(new Map());
        for (const [k, x] of [...v]) c.set(copy(k), copy(x));
        return c;
      }
      if (v instanceof Set) {
        const c = keep(new Set());
        for (const x of [...v]) c.add(copy(x));
        return c;
      }
      if (v instanceof Promise || v instanceof WeakMap || v instanceof WeakSet || v instanceof WeakRef) refuse(`a ${v.constructor.name}`);
      if (v instanceof Error) {
        const c = keep(Object.create(Object.getPrototypeOf(v)));
        for (const k of ["message", "stack", "cause"]) {
          if (Object.hasOwn(v, k)) Object.defineProperty(c, k, { value: copy(v[k]), writable: true, configurable: true });
        }
        return c;
      }
      const c = keep(Array.isArray(v) ? new Array(v.length) : {});
      for (const k of Object.keys(v)) c[k] = copy(v[k]);
      return c;
    };
    return copy(value);
  };

  // ---- URL: the parts of the URL standard that programs use. Host names must be ASCII.

  const special = { "http:": "80", "https:": "443", "ws:": "80", "wss:": "443", "ftp:": "21", "file:": "" };
  const escape = (s, unsafe) => s.replace(unsafe, (c) => {
    let out = "";
    for (const byte of new TextEncoder().encode(c)) out += "%" + byte.toString(16).toUpperCase().padStart(2, "0");
    return out;
  });
  const always = "\\u0000-\\u0020\\u007f-\\u{10ffff}";
  const unsafeIn = {
    path: new RegExp(`[${always}"#<>?\`{}^]`, "gu"), query: new RegExp(`[${always}"#<>']`, "gu"),
    hash: new RegExp(`[${always}"<>\`]`, "gu"), user: new RegExp(`[${always}"#<>?\`{}/:;=@\\[\\\\\\]^|]`, "gu"),
    opaque: /[\u0000-\u001f\u007f-\u{10ffff}]/gu, form: /[^A-Za-z0-9*\-._]/gu,
  };
  const unescape = (s) => {
    if (!s.includes("%")) return s;
    const bytes = [];
    const from = new TextEncoder().encode(s);
    for (let i = 0; i < from.length; i++) {
      const hex = from[i] === 37 ? String.fromCharCode(from[i + 1] ?? 32, from[i + 2] ?? 32) : "";
      if (/^[0-9a-f]{2}$/i.test(hex)) bytes.push(parseInt(hex, 16)), i += 2;
      else bytes.push(from[i]);
    }
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(bytes));
  };

  const parseIPv4 = (name) => {
    const parts = name.replace(/\.$/, "").split(".");
    if (!/^(0x[0-9a-f]*|[0-9]+)$/i.test(parts.at(-1))) return undefined; // a name
    const numbers = parts.map((p) => /^0x[0-9a-f]*$/i.test(p) ? parseInt(p.slice(2) || "0", 16)
      : /^0[0-7]+$/.test(p) ? parseInt(p, 8) : /^(0|[1-9][0-9]*)$/.test(p) ? +p : NaN);
    const last = numbers.pop();
    if (parts.length > 4 || numbers.some((n) => !(n < 256)) || !(last < 256 ** (4 - numbers.length))) return null;
    const whole = numbers.reduce((sum, n, i) => sum + n * 256 ** (3 - i), last);
    return [24, 16, 8, 0].map((shift) => Math.floor(whole / 2 ** shift) % 256).join(".");
  };
  const parseIPv6 = (text) => {
    const halves = text.split("::");
    if (halves.length > 2) return null;
    const [head, tail] = halves.map((half) => half === "" ? [] : half.split(":").flatMap((part, i, all) => {
      const four = i === all.length - 1 && part.includes(".") && /^\d+\.\d+\.\d+\.\d+$/.test(part) ? part.split(".").map(Number) : null;
      if (four?.every((n) => n < 256)) return [four[0] * 256 + four[1], four[2] * 256 + four[3]];
      return /^[0-9a-f]{1,4}$/i.test(part) ? [parseInt(part, 16)] : [NaN];
    }));
    const n = head.length + (tail?.length ?? 0);
    if (tail ? n > 7 : n !== 8) return null;
    const pieces = tail ? [...head, ...new Array(8 - n).fill(0), ...tail] : head;
    if (pieces.some(Number.isNaN)) return null;
    const plain = pieces.map((p) => p.toString(16)).join(":");
    const zeros = [...plain.matchAll(/(?<![0-9a-f])0(:0)+(?![0-9a-f])/g)].sort((a, b) => b[0].length - a[0].length)[0];
    if (!zeros) return `[${plain}]`;
    const at = zeros.index, before = plain.slice(0, at).replace(/:$/, ""), after = plain.slice(at + zeros[0].length).replace(/^:/, "");
    return `[${before}::${after}]`;
  };
  const parseHost = (name, isSpecial) => {
    if (name.startsWith("[")) return name.endsWith("]") ? parseIPv6(name.slice(1, -1)) : null;
    if (!isSpecial) return /[\u0000\t\n\r #/<>?@[\\\]^|]/.test(name) ? null : escape(name, unsafeIn.opaque);
    const domain = unescape(name).toLowerCase();
    if (domain === "" || /[\u0000-\u0020"#%/:<>?@[\\\]^`{|}\u007f]/.test(domain)) return null;
    if (/[^\x00-\x7f]/.test(domain)) throw new TypeError(`Invalid URL: the host ${domain} is not ASCII; give it in Punycode (xn--)`);
    const four = parseIPv4(domain);
    return four === undefined ? domain : four;
  };
  const parsePath = (path, base, u) => {
    const isSpecial = u.protocol in special, segments = base;
    const parts = (isSpecial ? path.replaceAll("\\", "/") : path).split("/");
    parts.forEach((part, i) => {
      const lower = part.toLowerCase().replaceAll("%2e", "."), last = i === parts.length - 1;
      if (lower === "..") {
        segments.pop();
        if (last) segments.push("");
      } else if (lower !== ".") segments.push(escape(part, unsafeIn.path));
      else if (last) segments.push("");
    });
    return segments;
  };

  // parseURL returns the parts of a URL, or null. A path that is a string is opaque.
  const parseURL = (input, base) => {
    input = input.toWellFormed().replace(/^[\u0000-\u0020]+|[\u0000-\u0020]+$/g, "").replace(/[\t\n\r]/g, "");
    const u = { protocol: "", username: "", password: "", host: null, port: "", path: [], query: null, hash: null };
    let rest = input;
    const hash = rest.indexOf("#");
    if (hash >= 0) u.hash = escape(rest.slice(hash + 1), unsafeIn.hash), rest = rest.slice(0, hash);
    const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(rest);
    if (scheme) u.protocol = scheme[1].toLowerCase() + ":", rest = rest.slice(scheme[0].length);
    else if (!base || typeof base.path === "string" && (rest !== "" || hash < 0)) return null;
    const isSpecial = (u.protocol || base.protocol) in special;
    const slashed = (s) => isSpecial ? s.replace(/^[\\/]+/, (m) => m.replaceAll("\\", "/")) : s;
    const relative = !scheme || isSpecial && base && base.protocol === u.protocol && !/^[\\/]/.test(rest);
    if (relative) u.protocol = base.protocol;
    const query = rest.indexOf("?");
    if (query >= 0) {
      u.query = escape(rest.slice(query + 1), isSpecial ? unsafeIn.query : new RegExp(`[${always}"#<>]`, "gu"));
      rest = rest.slice(0, query);
    }
    rest = slashed(rest);
    const authority = u.protocol === "file:" ? rest.startsWith("//") : rest.startsWith("//") || isSpecial && !relative;
    if (authority) {
      rest = u.protocol === "file:" || !isSpecial ? rest.slice(2) : rest.replace(/^\/+/, "");
      const end = rest.search(isSpecial ? /[\\/]/ : /\//);
      let auth = end < 0 ? rest : rest.slice(0, end);
      rest = end < 0 ? "" : rest.slice(end);
      const at = auth.lastIndexOf("@");
      if (at >= 0) {
        const [user, ...password] = auth.slice(0, at).split(":");
        u.username = escape(user, unsafeIn.user);
        u.password = escape(password.join(":"), unsafeIn.user);
        auth = auth.slice(at + 1);
      }
      const port = /:([0-9]*)$/.exec(auth);
      if (port && !(auth.startsWith("[") && auth.endsWith("]"))) {
        if (+port[1] > 65535) return null;
        auth = auth.slice(0, port.index);
        u.port = port[1] === "" || String(+port[1]) === special[u.protocol] ? "" : String(+port[1]);
      }
      if (u.protocol === "file:") u.host = auth === "" || auth.toLowerCase() === "localhost" ? "" : parseHost(auth, true);
      else u.host = auth === "" && !isSpecial ? "" : parseHost(auth, isSpecial);
      if (u.host === null || u.host === "" && (u.port || at >= 0)) return null;
      if (rest !== "" || isSpecial) u.path = parsePath(slashed(rest).replace(/^\//, ""), [], u);
    } else if (relative) {
      Object.assign(u, { username: base.username, password: base.password, host: base.host, port: base.port });
      if (rest === "") {
        u.path = typeof base.path === "string" ? base.path : [...base.path];
        if (query < 0) u.query = base.query;
      } else if (rest.startsWith("/")) u.path = parsePath(rest.slice(1), [], u);
      else u.path = parsePath(rest, base.path.slice(0, -1), u);
    } else if (u.protocol === "file:") {
      u.host = "";
      u.path = parsePath(rest.replace(/^\//, ""), [], u);
    } else u.path = rest.startsWith("/") ? parsePath(rest.slice(1), [], u) : escape(rest, unsafeIn.opaque);
    return u;
  };

  class URLSearchParams {
    #pairs = [];
    #changed;
    constructor(init = "", changed) {
      this.#changed = changed;
      if (typeof init === "object" && init !== null) {
        const pairs = typeof init[Symbol.iterator] === "function" ? [...init] : Object.entries(init);
        this.#pairs = pairs.map(([k, v]) => [String(k).toWellFormed(), String(v).toWellFormed()]);
      } else this.#parse(String(init));
    }
    #parse(s) {
      const plain = (t) => unescape(t.replaceAll("+", " "));
      this.#pairs = s.replace(/^\?/, "").split("&").filter(Boolean).map((pair) => {
        const i = pair.indexOf("=");
        return i < 0 ? [plain(pair), ""] : [plain(pair.slice(0, i)), plain(pair.slice(i + 1))];
      });
    }
    #set(pairs) {
      this.#pairs = pairs;
      this.#changed?.();
    }
    static reset(params, query) { params.#parse(query); }
    get size() { return this.#pairs.length; }
    append(k, v) { this.#set([...this.#pairs, [String(k), String(v)]]); }
    delete(k, v) { this.#set(this.#pairs.filter((p) => p[0] !== String(k) || v !== undefined && p[1] !== String(v))); }
    get(k) { return this.#pairs.find((p) => p[0] === String(k))?.[1] ?? null; }
    getAll(k) { return this.#pairs.filter((p) => p[0] === String(k)).map((p) => p[1]); }
    has(k, v) { return this.#pairs.some((p) => p[0] === String(k) && (v === undefined || p[1] === String(v))); }
    set(k, v) {
      const i = this.#pairs.findIndex((p) => p[0] === String(k));
      if (i < 0) return this.append(k, v);
      this.#set(this.#pairs.filter((p, j) => p[0] !== String(k) || j === i).map((p) => p[0] === String(k) ? [p[0], String(v)] : p));
    }
    sort() { this.#set(this.#pairs.toSorted((a, b) => a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0)); }
    forEach(f, self) { for (const [k, v] of this) f.call(self, v, k, this); }
    *entries() { for (const [k, v] of this.#pairs) yield [k, v]; }
    *keys() { for (const [k] of this.#pairs) yield k; }
    *values() { for (const [, v] of this.#pairs) yield v; }
    [Symbol.iterator]() { return this.entries(); }
    toString() {
      const form = (s) => escape(s.replaceAll(" ", "\u0001"), unsafeIn.form).replaceAll("%01", "+");
      return this.#pairs.map(([k, v]) => `${form(k)}=${form(v)}`).join("&");
    }
  }
  const resetParams = URLSearchParams.reset;
  delete URLSearchParams.reset;

  class URL {
    #u;
    #params;
    constructor(url, base) {
      const parsedBase = base === undefined ? undefined : parseURL(String(base));
      const u = parsedBase === null ? null : parseURL(String(url), parsedBase);
      if (!u) throw new TypeError(`Invalid URL: ${clip(String(url), 200)}`);
      this.#u = u;
      this.#params = new URLSearchParams(u.query ?? "", () => { u.query = String(this.#params) || null; });
    }
    static canParse(url, base) { return URL.parse(url, base) !== null; }
    static parse(url, base) {
      try {
        return new URL(url, base);
      } catch {
        return null;
      }
    }
    get protocol() { return this.#u.protocol; }
    set protocol(v) { this.#try(String(v).replace(/:.*$/s, "") + ":" + this.href.slice(this.#u.protocol.length)); }
    get username() { return this.#u.username; }
    set username(v) { if (this.#u.host) this.#u.username = escape(String(v), unsafeIn.user); }
    get password() { return this.#u.password; }
    set password(v) { if (this.#u.host) this.#u.password = escape(String(v), unsafeIn.user); }
    get hostname() { return this.#u.host ?? ""; }
    set hostname(v) { this.#replace({ host: parseHost(String(v), this.#u.protocol in special) ?? this.#u.host }); }
    get port() { return this.#u.port; }
    set port(v) { this.#replace({ port: v === "" ? "" : +v < 65536 && String(+v) !== special[this.#u.protocol] ? String(+v) : "" }); }
    get host() { return this.hostname + (this.#u.port && ":" + this.#u.port); }
    set host(v) {
      const [, name, port] = /^(\[.*\]|[^:]*)(?::(\d*))?/.exec(String(v));
      this.hostname = name;
      if (port) this.port = port;
    }
    get origin() { return this.#u.protocol in special && this.#u.protocol !== "file:" ? `${this.#u.protocol}//${this.host}` : "null"; }
    get pathname() { return typeof this.#u.path === "string" ? this.#u.path : this.#u.path.length || this.#u.protocol in special ? "/" + this.#u.path.join("/") : ""; }
    set pathname(v) {
      if (typeof this.#u.path !== "string") this.#u.path = parsePath(String(v).replace(/^[\\/]/, ""), [], this.#u);
    }
    get search() { return this.#u.query ? "?" + this.#u.query : ""; }
    set search(v) {
      v = String(v).replace(/^\?/, "");
      this.#u.query = v === "" ? null : escape(v, unsafeIn.query);
      resetParams(this.#params, v);
    }
    get searchParams() { return this.#params; }
    get hash() { return this.#u.hash ? "#" + this.#u.hash : ""; }
    set hash(v) {
      v = String(v).replace(/^#/, "");
      this.#u.hash = v === "" ? null : escape(v, unsafeIn.hash);
    }
    get href() {
      const u = this.#u, auth = u.username || u.password ? u.username + (u.password && ":" + u.password) + "@" : "";
      return u.protocol + (u.host !== null ? "//" + auth + this.host : "") + this.pathname +
        (u.query !== null ? "?" + u.query : "") + (u.hash !== null ? "#" + u.hash : "");
    }
    set href(v) { if (!this.#try(String(v))) throw new TypeError(`Invalid URL: ${clip(String(v), 200)}`); }
    #try(url) {
      const u = parseURL(url);
      if (!u) return false;
      Object.assign(this.#u, u);
      resetParams(this.#params, u.query ?? "");
      return true;
    }
    #replace(parts) { if (this.#u.host !== null && this.#u.protocol !== "file:") Object.assign(this.#u, parts); }
    toString() { return this.href; }
    toJSON() { return this.href; }
  }

  const console = Object.fromEntries(levels.map((level) => [level, write(level)]));
  console.log = console.info;
  console.trace = console.debug;
  console.assert = (ok, ...args) => ok || console.error("assertion failed:", ...args);
  const provide = (values) => {
    for (const [name, value] of Object.entries(values)) {
      Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
    }
  };
  provide({
    parley, tools, ToolError, console, TextEncoder, TextDecoder, structuredClone, URL, URLSearchParams,
    setTimeout: (f, ms, ...args) => timer(f, ms, false, args), clearTimeout: clear,
    setInterval: (f, ms, ...args) => timer(f, ms, true, args), clearInterval: clear,
    setImmediate: (f, ...args) => timer(f, 0, false, args), clearImmediate: clear,
  });
  Object.defineProperty(Math, "random", { value: random, writable: true, configurable: true });

  // ---- how a call ends

  // place returns where in the program an error was made: its innermost line in the program's own file.
  const place = (e) => {
    for (const line of String(e?.stack ?? "").split("\n")) {
      const at = line.lastIndexOf(file + ":");
      const m = at < 0 ? null : /^:(\d+)(?::(\d+))?/.exec(line.slice(at + file.length));
      if (m) {
        const n = +m[1], column = Math.max((+m[2] || 1) - (n === 1 ? indent : 0), 1);
        return { line: n, column, at: `${file}:${n}:${column}` };
      }
    }
  };

  // typed reports whether a syntax error is where TypeScript has a type. QuickJS names the place after the last token.
  const typed = (line, column) => {
    const from = line.slice(Math.max(column - 1, 0)), before = line.slice(0, Math.max(column - 1, 0));
    return /^\s*:/.test(from) && /[\w$\])?]\s*$/.test(before) || /^\s*(as|satisfies|implements)\b/.test(from) || /^\s*</.test(from) ||
      /^\s*(export\s+)?(declare\s+|abstract\s+|const\s+)?(interface|type|enum|namespace|abstract|declare)\s+[\w$]/.test(line) ||
      /\b(private|public|protected|readonly)\s+[\w$]/.test(line) || /^\s*import\s+type\b/.test(line);
  };

  const advice = (e, where, line) => {
    if (e.name === "SyntaxError" && where && typed(line, where.column)) {
      return "; this looks like a TypeScript type, which is not JavaScript: remove it, or strip the types with esbuild";
    }
    const module = /could not load module/.test(e.message);
    return module ? "; there are no modules to import: bundle them into the file with esbuild" : "";
  };

  // failure returns the response for what a program threw. It stays under 300 tokens, of 4.5 bytes.
  const failure = (e) => {
    if (Array.isArray(e?.invalid)) return { ok: false, invalid: e.invalid };
    if (Number.isInteger(e?.exit)) return { ok: false, exit: e.exit, message: clip(String(e.message ?? ""), 2000), details: e.details };
    const fail = (message, details) => ({ ok: false, exit: 1, message, details });
    if (e === null) return fail("the program ran out of memory, or threw null"); // memory for an error may be missing, too
    if (!(e instanceof Error)) return fail("the program threw " + clip(text(e) ?? "nothing", 400));
    const where = place(e), line = where ? source.split("\n")[where.line - 1] ?? "" : "";
    if (/^(InternalError: )?out of memory/.test(`${e.message}`)) {
      return fail("the program ran out of memory" + (where ? ` (${where.at})` : "") + ": hold less data at once");
    }
    const message = clip(`${e.name}: ${e.message}`, 500) + (where ? ` (${where.at})` : "") + advice(e, where, line);
    const details = where ? { file, line: where.line, column: where.column, source: clip(line.trim(), 120) } : {};
    if (e instanceof ToolError) {
      Object.assign(details, { code: e.code, exit_code: e.exit_code });
      for (const [key, value] of Object.entries({ corrected: e.corrected, template: e.template, did_you_mean: e.did_you_mean, details: e.details, tool: e.tool })) {
        const left = 800 - stringify(details).length;
        if (value !== undefined && stringify(value).length < left) details[key] = value;
        else if (Array.isArray(value) && value.length && stringify(value[0]).length < left) details[key] = [value[0]];
      }
    } else if (lines.length) details.console = clip(lines.slice(-3).join("\n"), 300);
    return fail(message, details);
  };

  const success = (value) => {
    let json;
    try {
      json = stringify(value === undefined ? null : value);
    } catch (e) {
      if (/out of memory|call stack/.test(e.message)) throw e;
      return { ok: false, exit: 1, message: `the program returned a value that is not JSON: ${clip(e.message, 200)}; return plain data` };
    }
    if (json === undefined) {
      return { ok: false, exit: 1, message: `the program returned a ${typeof value}, which is not JSON; return plain data` };
    }
    return `{"ok":true,"result":${json}}`;
  };

  const respond = (r) => {
    const more = {};
    if (halves) warnings.push("half of a surrogate pair, as slice leaves of an emoji, became U+FFFD");
    if (content.length) more.content = content;
    if (warnings.length) more.warnings = warnings;
    if (typeof r !== "string") return stringify(Object.assign(r, { warnings: more.warnings }));
    return Object.keys(more).length ? r.slice(0, -1) + "," + stringify(more).slice(1) : r;
  };

  // runProgram runs a text of js.run as the body of an async function.
  const runProgram = async ({ source: text, inputs = {} }) => {
    file = "program.js";
    source = text;
    const head = "(async (inputs) => { ";
    indent = head.length;
    const value = await evaluate(`${head}${source}\n})`, file, strict)(inputs);
    if (lines.length) {
      const omitted = dropped ? [`(${dropped} lines before)`] : [];
      content.push({ type: "text", text: ["console:", ...omitted, ...lines].join("\n") });
    }
    if (value === undefined && !content.length) warnings.push("the program returned nothing; only what it returns is shown");
    return value;
  };

  // functions returns the names of the functions in an object, and in the objects in it.
  const functions = (of, prefix = "") => Object.entries(of ?? {}).flatMap(([name, value]) =>
    typeof value === "function" ? [prefix + name]
    : value && typeof value === "object" && !prefix ? functions(value, name + ".") : []);

  // runScript runs a tool of a script: a function that its module exports. Without a tool it returns their names.
  const runScript = async ({ script, tool, params, ...context }) => {
    file = script.file;
    source = script.source;
    indent = 0;
    const exports = await evaluate(source, file, asModule);
    if (tool === "") return [...functions(exports), ...functions(exports.default)];
    const find = (from) => tool.split(".").reduce((o, part) => o?.[part], from);
    const f = find(exports) ?? find(exports.default);
    if (typeof f !== "function") throw new Error(`${file} exports no function ${tool}`);
    return f(params, context);
  };

  const begin = (request) => {
    const run = request.script ? runScript(request) : runProgram(request.params);
    run.then(success).catch(failure).then((r) => { response = r; }, () => { response = tooMuch; });
  };

  const tooMuch = { ok: false, exit: 1, message: "the program ran out of memory: hold less data at once" };
  const unsettled = {
    ok: false, exit: 1,
    message: "the program waits for a promise that nothing will settle: a call of resolve is missing, or it waits for itself",
  };

  // turn(text) takes a request or answers of the host. turn() returns the next text for the host, or undefined if there
  // are jobs to run first. If it throws, memory is exhausted, and the next turn reports that.
  let ended = false;
  return (text) => {
    if (text !== undefined) {
      const message = parse(text);
      if (!message.answers) return begin(message);
      for (const { id, ok, result, error } of message.answers) {
        const [resolve, reject, stack] = waiting.get(id);
        waiting.delete(id);
        if (ok) resolve(result);
        else reject(Object.defineProperty(new ToolError(error), "stack", { value: stack, writable: true, configurable: true }));
      }
      return;
    }
    if (response === undefined && asked.length) {
      const pending = asked;
      asked = [];
      return stringify({ pending });
    }
    if (response === undefined && timers.size) {
      const [id, next] = [...timers].reduce((a, b) => b[1].due < a[1].due ? b : a);
      sleep(Math.max(next.due - performance.now(), 0));
      if (next.every) next.due = performance.now() + next.every;
      else timers.delete(id);
      queueMicrotask(() => next.f(...next.args));
      return;
    }
    const last = ended ? tooMuch : response ?? unsettled;
    ended = true;
    return respond(last);
  };
}
