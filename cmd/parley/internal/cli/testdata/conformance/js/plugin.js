// Calls every part of the SDK.
/// <reference path="parley.d.ts" />

const outcome = (call) => call.then(() => ({ text: "ok" }), (e) => ({ text: e.code }));

export const echo = ({ value }) => ({ value });
export const sized = (params) => params;
export const text = ({ text }) => ({ text });
export function fail({ code }) {
  throw code === 10 ? new parley.Exit(10, 'declared "failure"') : new parley.Exit(42, "no such code");
}
export function invalid() {
  throw new parley.Invalid("/text", "another text");
}
export function warn() {
  parley.warn('first "warning"');
  parley.warn("second");
  return {};
}
export const about = (_, { caller }) => ({ text: "about " + caller });
export const call = () => outcome(tools.text.hash({ text: "a" }));
export const fetch = () => outcome(parley.http("https://example.com"));
export const secret = () => outcome(parley.secret("KEY"));
export function notes() {
  parley.log('a "line"');
  parley.progress(1, 2, "half");
  return {};
}
