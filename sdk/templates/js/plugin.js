// NAME: greets people.
/// <reference path="parley.d.ts" />

/** @param {{ name: string }} params */
export function greet({ name }) {
  if (name === "nobody") throw new parley.Exit(10, "there is nobody to greet");
  return { text: `Hello, ${name}` };
}
