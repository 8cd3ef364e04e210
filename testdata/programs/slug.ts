// slug: a parley/1 plugin in AssemblyScript, which implements sdk/abi.md with only the standard library.

// Host functions. A plugin declares those that it uses.
// @ts-ignore: decorator
@external("parley", "log")
declare function log(level: i32, ptr: usize, len: i32): void;

/** Allocates a block for the host to write to. It is never freed, because the instance ends with the call. */
export function parley_alloc(len: i32): usize {
  return heap.alloc(max(len, 1));
}

/** Handles a request of `len` bytes at `ptr` and returns the response as `ptr << 32 | len`. */
export function parley_call(ptr: usize, len: i32): u64 {
  const request = new Reader(String.UTF8.decodeUnsafe(ptr, len));
  const response = String.UTF8.encode(answer(request));
  return (<u64>changetype<usize>(response)) << 32 | response.byteLength;
}

function answer(request: Reader): string {
  const tool = request.member("tool");
  const params = new Reader(request.member("params"));
  if (tool == '"slug"') return slug(new Reader(params.member("text")).string());
  if (tool == '"collatz"') return collatz(U64.parseInt(params.member("below")));
  return failure(1, "slug has no such tool");
}

/** Makes a name for URLs and files from a title. */
function slug(title: string): string {
  let out = "";
  let gap = false;
  for (let i = 0; i < title.length; i++) {
    const c = title.charCodeAt(i);
    const small = c | 0x20; // for letters
    const kept = (small >= 0x61 && small <= 0x7a) || (c >= 0x30 && c <= 0x39);
    if (kept) out += (gap && out.length > 0 ? "-" : "") + String.fromCharCode(small);
    gap = !kept;
  }
  if (out.length == 0) return failure(10, "the title holds neither a letter from a to z nor a digit");
  const line = String.UTF8.encode(`${title.length} characters became ${out.length}`);
  log(0, changetype<usize>(line), line.byteLength);
  return success(`{"slug":"${out}"}`);
}

/** Finds the number below a limit with the longest Collatz sequence. A large limit takes long. */
function collatz(below: u64): string {
  let start: u64 = 1;
  let most: u64 = 0;
  for (let n: u64 = 1; n < below; n++) {
    let steps: u64 = 0;
    for (let k = n; k != 1; steps++) k = k & 1 ? 3 * k + 1 : k >> 1;
    if (steps > most) {
      start = n;
      most = steps;
    }
  }
  return success(`{"start":${start},"steps":${most}}`);
}

function success(result: string): string {
  return `{"ok":true,"result":${result}}`;
}

/** The message must not contain characters that JSON escapes. */
function failure(exit: i32, message: string): string {
  return `{"ok":false,"exit":${exit},"message":"${message}"}`;
}

/** Reads JSON, which is valid because it comes from the host. */
class Reader {
  private at: i32 = 0;

  constructor(private text: string) {}

  /** Returns the JSON of a member of this object, or "". */
  member(name: string): string {
    this.at = 1;
    while (this.peek() != CLOSE_BRACE) {
      const found = this.string() == name;
      this.peek();
      this.at++; // the colon
      this.peek();
      const from = this.at;
      this.skip();
      if (found) return this.text.substring(from, this.at);
      if (this.peek() == COMMA) this.at++;
    }
    return "";
  }

  /** Returns the value of the string at this position. */
  string(): string {
    this.peek();
    let out = "";
    let from = ++this.at;
    for (let c = this.next(); c != QUOTE; c = this.next()) {
      if (c != BACKSLASH) continue;
      out += this.text.substring(from, this.at - 1) + this.escape();
      from = this.at;
    }
    return out + this.text.substring(from, this.at - 1);
  }

  private next(): i32 {
    return this.text.charCodeAt(this.at++);
  }

  /** Skips white space and returns the next character. */
  private peek(): i32 {
    while (this.text.charCodeAt(this.at) <= 0x20) this.at++;
    return this.text.charCodeAt(this.at);
  }

  /** Skips a value. It counts brackets, and reads strings because they may contain brackets. */
  private skip(): void {
    let depth = 0;
    do {
      const c = this.peek();
      if (c == QUOTE) this.string();
      else if (c == OPEN_BRACE || c == OPEN_BRACKET) { depth++; this.at++; }
      else if (c == CLOSE_BRACE || c == CLOSE_BRACKET) { depth--; this.at++; }
      else if (c == COMMA || c == COLON) this.at++;
      else this.word();
    } while (depth > 0);
  }

  /** Skips a number, true, false or null. */
  private word(): void {
    for (let c = this.next(); c > 0x20 && c != COMMA && c != CLOSE_BRACE && c != CLOSE_BRACKET; ) c = this.next();
    this.at--;
  }

  private escape(): string {
    const c = this.next();
    switch (c) {
      case 0x62: return "\b";
      case 0x66: return "\f";
      case 0x6e: return "\n";
      case 0x72: return "\r";
      case 0x74: return "\t";
      case 0x75: // u and four digits: a 16-bit unit of a string
        this.at += 4;
        return String.fromCharCode(<i32>parseInt(this.text.substring(this.at - 4, this.at), 16));
    }
    return String.fromCharCode(c);
  }
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
