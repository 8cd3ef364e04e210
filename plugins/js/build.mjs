// Makes the plugin's module: joins quickjs.wasm with shim.wat, evaluates prelude.js once, and makes the memory after that
// the memory with which every instance begins. So no call pays for it, and the module needs no _initialize.
//
//   node plugins/js/build.mjs OUT
//
// It needs only the packages of testdata/programs, which .ci/programs fetches by their lock file, and is reproducible:
// nothing of this machine or of the time is in the result.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const modules = join(here, "../../testdata/programs/node_modules");
const work = mkdtempSync(join(tmpdir(), "parley-js-"));

/** Runs a program of binaryen. Node has crashed (SIGSEGV) while it ran one of these modules of 9 MB, so V8's optimizing compiler
 *  is off, which costs no time, and a program that a signal ended runs once more: its result is reproducible. */
function tool(name, ...args) {
  const run = () => spawnSync(process.execPath, ["--liftoff-only", join(modules, "binaryen/bin", name), ...args],
    { cwd: work, stdio: ["ignore", "ignore", "inherit"] });
  let ended = run();
  if (ended.signal) ended = run();
  if (ended.status !== 0) throw new Error(`${name} failed: ${ended.error ?? ended.signal ?? `exit code ${ended.status}`}`);
}

// What quickjs.wasm is compiled with, so that binaryen accepts it.
const features = ["bulk-memory", "sign-ext", "mutable-globals", "nontrapping-float-to-int", "multivalue", "reference-types"]
  .map((name) => "--enable-" + name);

try {
  tool("wasm-as", ...features, join(here, "shim.wat"), "-o", "shim.wasm");
  tool("wasm-merge", ...features, "shim.wasm", "env", join(modules, "quickjs-wasi/quickjs.wasm"), "quickjs", "-o", "merged.wasm",
    "--rename-export-conflicts");
  await bake("merged.wasm", "baked.wasm");
  const keep = ["memory", "parley_alloc", "parley_call", "parley_resume"];
  writeFileSync(join(work, "keep.json"), JSON.stringify([
    { name: "root", root: true, reaches: keep },
    ...keep.map((name) => ({ name, export: name })),
  ]));
  tool("wasm-metadce", ...features, "baked.wasm", "--graph-file", "keep.json", "-o", "small.wasm");
  tool("wasm-opt", ...features, "-Oz", "--strip-producers", "--strip-debug", "small.wasm", "-o", "plugin.wasm");
  const licensed = Buffer.concat([readFileSync(join(work, "plugin.wasm")), section("license", readFileSync(join(here, "LICENSE")))]);
  writeFileSync(resolve(process.argv[2]), licensed);
} finally {
  rmSync(work, { recursive: true });
}

/** Runs boot in an instance, and writes the module with the memory and the globals that it left. */
async function bake(from, to) {
  const { default: binaryen } = await import(join(modules, "binaryen/index.js"));
  const bytes = readFileSync(join(work, from));
  let memory;
  const nothing = () => 0;
  const { instance } = await WebAssembly.instantiate(bytes, {
    wasi_snapshot_preview1: new Proxy({}, { get: (_, name) => name === "clock_time_get" ? (_clock, _precision, at) => {
      new DataView(memory.buffer).setBigUint64(at, 0n, true);
      return 0;
    } : name === "random_get" ? (at, n) => {
      new Uint8Array(memory.buffer, at, n).fill(1);
      return 0;
    } : nothing }),
    parley: new Proxy({}, { get: () => () => { throw new Error("the prelude called the host"); } }),
  });
  const wasm = instance.exports;
  memory = wasm.memory;
  const put = (text) => {
    const utf8 = new TextEncoder().encode(text);
    const at = wasm.malloc(utf8.length + 1);
    new Uint8Array(memory.buffer).set([...utf8, 0], at);
    return [at, utf8.length];
  };
  const prelude = put(readFileSync(join(here, "prelude.js"), "utf8"));
  const file = put("parley:prelude");
  if (!wasm.boot(...put("host"), ...prelude, file[0])) {
    throw new Error("prelude.js: " + exception(wasm));
  }
  wasm.qjs_run_gc();

  const module = binaryen.readBinaryWithFeatures(bytes, binaryen.Features.All);
  const data = segments(new Uint8Array(memory.buffer)).map(([offset, data]) => ({ offset: module.i32.const(offset), data }));
  module.setMemory(memory.buffer.byteLength / 65536, 65536, null, data, false, false, module.getMemoryInfo().name);
  for (const name of ["turn", "scratch", "reserve"]) {
    const global = binaryen.getExportInfo(module.getExport(name)).value;
    module.removeGlobal(global);
    module.addGlobal(global, binaryen.i32, true, module.i32.const(wasm[name].value));
  }
  if (!module.validate()) throw new Error("the module with its memory is not valid");
  writeFileSync(join(work, to), module.emitBinary());
}

function exception(wasm) {
  const at = wasm.qjs_get_string(wasm.qjs_get_exception());
  const bytes = new Uint8Array(wasm.memory.buffer, at);
  return new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0)));
}

/** Returns a custom section. */
function section(name, content) {
  const leb = (n) => n < 128 ? [n] : [n & 127 | 128, ...leb(n >> 7)];
  const body = Buffer.concat([Buffer.from([name.length]), Buffer.from(name), content]);
  return Buffer.concat([Buffer.from([0, ...leb(body.length)]), body]);
}

/** Returns the parts of a memory that are not zero, joined where less than 32 zeros are between them. */
function segments(bytes) {
  const all = [];
  for (let i = 0; i < bytes.length; ) {
    while (i < bytes.length && bytes[i] === 0) i++;
    const start = i;
    for (let zeros = 0; i < bytes.length && zeros < 32; i++) zeros = bytes[i] === 0 ? zeros + 1 : 0;
    let end = i;
    while (end > start && bytes[end - 1] === 0) end--;
    if (end > start) all.push([start, bytes.slice(start, end)]);
  }
  return all;
}
