// escape: a parley/1 guest that tries to escape from its browser context. Its tool "ways" lists its attempts; "try" makes one and returns the reply to each
// step of it. The test has the required outcomes.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT(name) __attribute__((export_name(name)))
#define IMPORT(name) __attribute__((import_module("parley"), import_name(name)))

IMPORT("call_tool") uint64_t call_tool(const char *ptr, uint32_t len);

EXPORT("parley_alloc") void *parley_alloc(uint32_t len) { return malloc(len ? len : 1); }

// A step is one call. In its texts ' is ", and $NAME is the value of the member NAME of "with". Steps with the same name are one attempt.
static const struct step { const char *way, *tool, *params, *options; } steps[] = {
#define EVALUATE(way, js) {way, "cdp.Runtime.evaluate", "{'expression':'" js "','awaitPromise':true,'returnByValue':true}", 0}
#define AT_HOME(way) NAVIGATE(way, "http://$HOME/?" way), \
  EVALUATE(way, "new Promise(r => document.readyState === `complete` ? r(1) : addEventListener(`load`, () => r(1)))")
#define NAVIGATE(way, url) {way, "cdp.Page.navigate", "{'url':'" url "'}", 0}
// The location of the page after a while.
#define WHERE(way) EVALUATE(way, "new Promise(r => setTimeout(() => r(location.href + document.documentElement.innerText), 300))")

  // Allowed actions.
  {"nothing-special", "cdp.open", "{'url':'http://$HOME/?nothing-special'}", 0},
  EVALUATE("nothing-special", "document.body.innerText"),
  {"nothing-special", "cdp.targets", "{}", 0},

  // Other schemes.
  NAVIGATE("file", "file:///etc/passwd"),
  NAVIGATE("file-shouted", " \\tFILE:/etc/passwd"),
  {"file-new-target", "cdp.Target.createTarget", "{'url':'file:///etc/passwd'}", 0},
  {"file-open", "cdp.open", "{'url':'file:///etc/passwd'}", 0},
  {"file-twice", "cdp.Page.navigate", "{'url':'http://$HOME/?file-twice','url':'file:///etc/passwd'}", "{'send_anyway':true}"},
  {"file-resource", "cdp.Network.loadNetworkResource", "{'url':'file:///etc/passwd','options':{'disableCache':true,'includeCredentials':false}}", 0},
  AT_HOME("file-by-script"),
  EVALUATE("file-by-script", "location = `file:///etc/passwd`; 1"),
  WHERE("file-by-script"),
  AT_HOME("file-in-frame"),
  EVALUATE("file-in-frame", "new Promise(r => { const f = document.createElement(`iframe`); f.onload = () => { let t = `closed`; try { t = f.contentDocument.body.innerText } catch (e) {} r(t) }; f.src = `file:///etc/passwd`; document.body.append(f); setTimeout(() => r(`late`), 1000) })"),
  AT_HOME("file-pop-up"),
  EVALUATE("file-pop-up", "const w = open(`file:///etc/passwd`); new Promise(r => setTimeout(() => { let t = `closed`; try { t = w.location.href } catch (e) {} r(t) }, 500))"),
  AT_HOME("file-redirect"),
  NAVIGATE("file-redirect", "http://$HOME/to?file:///etc/passwd"),
  NAVIGATE("chrome", "chrome://version/"),
  NAVIGATE("view-source", "view-source:http://$HOME/"),
  NAVIGATE("data", "data:text/html,hello"),
  NAVIGATE("javascript", "javascript:1"),
  NAVIGATE("devtools", "devtools://devtools/bundled/inspector.html"),
  NAVIGATE("ftp", "ftp://$SECRET/ftp"),
  AT_HOME("data-by-script"),
  EVALUATE("data-by-script", "location = `data:text/html,gone-astray`; 1"),
  WHERE("data-by-script"),
  AT_HOME("blob-by-script"),
  EVALUATE("blob-by-script", "location = URL.createObjectURL(new Blob([`gone-` + `astray`], {type: `text/html`})); 1"),
  WHERE("blob-by-script"),

  // Addresses.
  NAVIGATE("loopback", "http://$SECRET/loopback"),
  {"loopback-open", "cdp.open", "{'url':'http://$SECRET/loopback-open'}", 0},
  {"loopback-new-target", "cdp.Target.createTarget", "{'url':'http://$SECRET/loopback-new-target'}", 0},
  NAVIGATE("loopback-6", "http://[::1]:$PORT6/loopback-6"),
  NAVIGATE("loopback-mapped", "http://[::ffff:127.0.0.1]:$PORT/loopback-mapped"),
  NAVIGATE("loopback-number", "http://2130706433:$PORT/loopback-number"),
  NAVIGATE("loopback-other", "http://127.0.0.2:$PORT2/loopback-other"),
  NAVIGATE("localhost", "http://localhost:$PORT/localhost"),
  NAVIGATE("localhost-below", "http://below.localhost:$PORT/localhost-below"),
  NAVIGATE("unspecified", "http://0.0.0.0:$PORT/unspecified"),
  NAVIGATE("tls", "https://$SECRET/tls"),
  NAVIGATE("metadata", "http://169.254.169.254/latest/meta-data/"),
  NAVIGATE("redirect", "http://$HOME/to?http://$SECRET/redirect"),
  NAVIGATE("name-of-loopback", "http://loop.test:$PORT/name-of-loopback"),
  NAVIGATE("rebinding", "http://turn.test:$PORT3/?rebinding"),
  EVALUATE("rebinding", "(async () => { const all = []; for (let i = 0; i < 3; i++) all.push(await fetch(`/rebinding`).then(r => r.text(), e => `refused`)); return all.join() })()"),

  // Actions of a page itself.
  AT_HOME("fetch"),
  EVALUATE("fetch", "fetch(`http://$SECRET/fetch`).then(r => r.text(), () => `refused`)"),
  AT_HOME("fetch-opaque"),
  EVALUATE("fetch-opaque", "fetch(`http://$SECRET/fetch-opaque`, {mode: `no-cors`}).then(() => `answered`, () => `refused`)"),
  AT_HOME("image"),
  EVALUATE("image", "new Promise(r => { const i = new Image(); i.onload = () => r(`loaded`); i.onerror = () => r(`refused`); i.src = `http://$SECRET/image` })"),
  AT_HOME("frame"),
  EVALUATE("frame", "new Promise(r => { const f = document.createElement(`iframe`); f.onload = () => r(`over`); f.src = `http://$SECRET/frame`; document.body.append(f); setTimeout(() => r(`over`), 1000) })"),
  AT_HOME("form"),
  EVALUATE("form", "const f = document.createElement(`form`); f.method = `POST`; f.action = `http://$SECRET/form`; document.body.append(f); f.submit(); 1"),
  WHERE("form"),
  AT_HOME("web-socket"),
  EVALUATE("web-socket", "new Promise(r => { const s = new WebSocket(`ws://$SECRET/web-socket`); s.onopen = () => r(`open`); s.onerror = () => r(`refused`) })"),
  AT_HOME("worker"),
  EVALUATE("worker", "new Promise(r => { const w = new Worker(URL.createObjectURL(new Blob([`fetch(` + JSON.stringify(`http://$SECRET/worker`) + `).then(() => postMessage(1), () => postMessage(0))`]))); w.onmessage = e => r(e.data ? `answered` : `refused`) })"),
  AT_HOME("service-worker"),
  EVALUATE("service-worker", "(async () => { await navigator.serviceWorker.register(`/worker.js?$SECRET/service-worker`); await navigator.serviceWorker.ready; return new Promise(r => { navigator.serviceWorker.onmessage = e => r(e.data); navigator.serviceWorker.ready.then(s => s.active.postMessage(1)); setTimeout(() => r(`late`), 3000) }) })()"),
  AT_HOME("beacon"),
  EVALUATE("beacon", "navigator.sendBeacon(`http://$SECRET/beacon`, `x`); new Promise(r => setTimeout(() => r(`sent`), 300))"),
  AT_HOME("pop-up"),
  EVALUATE("pop-up", "open(`http://$SECRET/pop-up`); open(`http://$SECRET/pop-up`, `_blank`, `noopener`); new Promise(r => setTimeout(() => r(`over`), 500))"),
  AT_HOME("speculation"),
  EVALUATE("speculation", "const s = document.createElement(`script`); s.type = `speculationrules`; s.text = JSON.stringify({prefetch: [{urls: [`http://$SECRET/speculation`], eagerness: `immediate`}, {urls: [`http://$SECRET/speculation`], eagerness: `immediate`, requires: [`anonymous-client-ip-when-cross-origin`]}], prerender: [{urls: [`http://$SECRET/speculation`], eagerness: `immediate`}]}); document.head.append(s); for (const rel of [`preconnect`, `prefetch`, `dns-prefetch`, `preload`]) { const l = document.createElement(`link`); l.rel = rel; l.as = `script`; l.href = `http://$SECRET/speculation`; document.head.append(l) } new Promise(r => setTimeout(() => r(`over`), 1000))"),
  AT_HOME("web-rtc"),
  EVALUATE("web-rtc", "(async () => { const c = new RTCPeerConnection({iceServers: [{urls: `stun:$UDP`}, {urls: [`turn:$UDP`, `turn:$SECRET?transport=tcp`], username: `u`, credential: `p`}]}); c.createDataChannel(`d`); const found = []; c.onicecandidate = e => e.candidate && found.push(e.candidate.candidate); await c.setLocalDescription(await c.createOffer()); await new Promise(r => setTimeout(r, 1000)); return found.join() })()"),
  AT_HOME("download"),
  EVALUATE("download", "const a = document.createElement(`a`); a.href = `/download`; a.download = `planted.txt`; document.body.append(a); a.click(); new Promise(r => setTimeout(() => r(`over`), 500))"),

  // Other callers' pages, cookies and contexts.
  {"others-list", "cdp.Target.getTargets", "{}", 0},
  {"others-targets", "cdp.targets", "{}", 0},
  {"others-status", "cdp.status", "{'all':true}", 0},
  {"others-events", "cdp.events", "{'limit':10000}", 0},
  {"others-contexts", "cdp.Target.getBrowserContexts", "{}", 0},
  {"others-page", "cdp.Runtime.evaluate", "{'expression':'document.cookie'}", "{'target':'$PERSON'}"},
  {"others-page-by-url", "cdp.Runtime.evaluate", "{'expression':'document.cookie'}", "{'target':'person'}"},
  {"others-page-by-index", "cdp.Runtime.evaluate", "{'expression':'document.cookie'}", "{'target':'9'}"},
  {"others-attach", "cdp.Target.attachToTarget", "{'targetId':'$PERSON','flatten':true}", 0},
  AT_HOME("others-attach-within"),
  {"others-attach-within", "cdp.Target.attachToTarget", "{'targetId':'$PERSON','flatten':true}", "{'target':'0'}"},
  {"others-info", "cdp.Target.getTargetInfo", "{'targetId':'$PERSON'}", 0},
  {"others-close", "cdp.Target.closeTarget", "{'targetId':'$PERSON'}", 0},
  {"others-close-verb", "cdp.close", "{}", "{'target':'$PERSON'}"},
  {"others-activate", "cdp.activate", "{'target':'$PERSON'}", 0},
  {"others-window", "cdp.Browser.getWindowForTarget", "{'targetId':'$PERSON'}", 0},
  {"others-context", "cdp.Target.createTarget", "{'url':'http://$SECRET/others-context','browserContextId':'$CONTEXT'}", 0},
  {"others-context-end", "cdp.Target.disposeBrowserContext", "{'browserContextId':'$CONTEXT'}", 0},
  {"others-cookies", "cdp.Storage.getCookies", "{'browserContextId':'$CONTEXT'}", 0},
  {"others-cookies-own", "cdp.Storage.getCookies", "{}", 0},
  {"others-cookies-of-browser", "cdp.Storage.getCookies", "{}", "{'target':'browser'}"},
  {"others-cookies-all", "cdp.Network.getAllCookies", "{}", 0},
  {"others-storage", "cdp.DOMStorage.getDOMStorageItems", "{'storageId':{'securityOrigin':'http://$PERSONS','isLocalStorage':true}}", 0},
  {"others-storage-by-key", "cdp.DOMStorage.getDOMStorageItems", "{'storageId':{'storageKey':'http://$PERSONS/','isLocalStorage':true}}", 0},
  {"others-databases", "cdp.IndexedDB.requestDatabaseNames", "{'securityOrigin':'http://$PERSONS'}", 0},
  {"others-caches", "cdp.CacheStorage.requestCacheNames", "{'securityOrigin':'http://$PERSONS'}", 0},
  {"others-usage", "cdp.Storage.getUsageAndQuota", "{'origin':'http://$PERSONS'}", 0},
  {"others-cookies-set", "cdp.Storage.setCookies", "{'cookies':[{'name':'kept','value':'planted','domain':'127.0.0.1','path':'/'}]}", 0},
  {"others-cookies-clear", "cdp.Storage.clearCookies", "{}", 0},
  {"others-data-clear", "cdp.Storage.clearDataForOrigin", "{'origin':'http://$PERSONS','storageTypes':'all'}", 0},
  {"others-cookies-clear-page", "cdp.Network.clearBrowserCookies", "{}", 0},
  {"others-requests", "cdp.Fetch.enable", "{}", "{'target':'browser'}"},
  {"others-downloads", "cdp.Browser.setDownloadBehavior", "{'behavior':'allow','downloadPath':'/tmp','browserContextId':'$CONTEXT'}", 0},

  // The browser, and the machine.
  {"new-context", "cdp.Target.createBrowserContext", "{}", 0},
  {"new-context-proxy", "cdp.Target.createBrowserContext", "{'proxyServer':'direct://'}", 0},
  {"browser-session", "cdp.Target.attachToBrowserTarget", "{}", 0},
  {"tunnel", "cdp.Target.sendMessageToTarget", "{'message':'{}','targetId':'$PERSON'}", 0},
  {"protocol-in-page", "cdp.Target.exposeDevToolsProtocol", "{'targetId':'$PERSON'}", 0},
  {"auto-attach", "cdp.Target.setAutoAttach", "{'autoAttach':true,'waitForDebuggerOnStart':true,'flatten':true}", 0},
  {"discover", "cdp.Target.setDiscoverTargets", "{'discover':true}", 0},
  {"remote", "cdp.Target.setRemoteLocations", "{'locations':[{'host':'127.0.0.1','port':$PORT}]}", 0},
  {"browser-close", "cdp.Browser.close", "{}", 0},
  {"browser-crash", "cdp.Browser.crash", "{}", 0},
  {"screens", "cdp.Emulation.updateScreen", "{'screenId':'1','width':333,'height':333}", 0},
  // All pages share the clipboard.
#define PASTED(way, key) AT_HOME(way), \
  EVALUATE(way, "const t = document.createElement(`textarea`); document.body.append(t); t.focus(); 1"), \
  {way, "cdp.Input.dispatchKeyEvent", key, 0}, \
  EVALUATE(way, "new Promise(r => setTimeout(() => r(`pasted ` + document.querySelector(`textarea`).value), 200))")
  PASTED("paste", "{'type':'keyDown','commands':['paste']}"),
  PASTED("paste-by-key", "{'type':'rawKeyDown','modifiers':2,'key':'v','code':'KeyV','windowsVirtualKeyCode':86}"),
  PASTED("paste-by-key-name", "{'type':'rawKeyDown','modifiers':2,'key':'v','code':'KeyV'}"),
  PASTED("paste-by-native-key", "{'type':'rawKeyDown','modifiers':2,'key':'v','code':'KeyV','nativeVirtualKeyCode':86}"),
  PASTED("paste-by-insert", "{'type':'rawKeyDown','modifiers':8,'key':'Insert','code':'Insert','windowsVirtualKeyCode':45}"),
  PASTED("paste-by-script", "{'type':'rawKeyDown','key':'a','code':'KeyA','windowsVirtualKeyCode':65}"),
  {"paste-by-script", "cdp.Runtime.evaluate", "{'expression':'document.execCommand(`paste`); navigator.clipboard.readText().catch(() => ``).then(t => `pasted ` + t + document.querySelector(`textarea`).value)','awaitPromise':true,'returnByValue':true,'userGesture':true}", 0},
  {"trace", "cdp.Tracing.start", "{}", 0},
  {"system", "cdp.SystemInfo.getProcessInfo", "{}", 0},
  {"port", "cdp.Tethering.bind", "{'port':9333}", 0},
  {"extension", "cdp.Extensions.loadUnpacked", "{'path':'/tmp'}", 0},
  {"unknown", "cdp.Novel.reach", "{}", "{'send_anyway':true}"},
  {"program", "cdp.open", "{'chrome':'/bin/sh'}", "{'browser':'second'}"},
  {"profile", "cdp.open", "{'user_data_dir':'/root'}", "{'browser':'second'}"},
  {"attach", "cdp.open", "{'attach':'127.0.0.1:$PORT'}", "{'browser':'second'}"},

  // Files.
  AT_HOME("file-input"),
  EVALUATE("file-input", "document.body.innerHTML = `<input type=file>`; 1"),
  {"file-input", "cdp.DOM.enable", "{}", 0},
  {"file-input", "cdp.DOM.getDocument", "{}", 0},
  {"file-input", "cdp.DOM.setFileInputFiles", "{'nodeId':1,'files':['/etc/passwd']}", 0},
  {"file-input-link", "cdp.DOM.setFileInputFiles", "{'nodeId':1,'files':['/files/link']}", 0},
  {"file-input-up", "cdp.DOM.setFileInputFiles", "{'nodeId':1,'files':['/files/../etc/passwd']}", 0},
  AT_HOME("file-input-granted"),
  EVALUATE("file-input-granted", "document.body.innerHTML = `<input type=file>`; 1"),
  {"file-input-granted", "cdp.DOM.getDocument", "{'depth':-1}", 0}, // numbers the document 1, then html, head, body and input
  {"file-input-granted", "cdp.DOM.setFileInputFiles", "{'nodeId':5,'files':['/files/plain']}", 0},
  EVALUATE("file-input-granted", "Promise.all([...document.querySelector(`input`).files].map(f => f.text()))"),
  {"file-drop", "cdp.Input.dispatchDragEvent", "{'type':'drop','x':1,'y':1,'data':{'items':[],'files':['/etc/passwd'],'dragOperationsMask':1}}", 0},
  {"file-download", "cdp.Browser.setDownloadBehavior", "{'behavior':'allow','downloadPath':'/etc'}", 0},
  {"file-download-default", "cdp.Browser.setDownloadBehavior", "{'behavior':'default'}", 0},
  {"file-download-read-only", "cdp.Browser.setDownloadBehavior", "{'behavior':'allow','downloadPath':'/files'}", 0},
};

enum { count = sizeof steps / sizeof *steps };

// out is the response.
static char *out;
static uint32_t used, room;

static void say(const char *s, uint32_t n) {
  if (used + n > room) out = realloc(out, room = 2 * (used + n));
  memcpy(out + used, s, n);
  used += n;
}

static void say_text(const char *s) { say(s, strlen(s)); }

// value finds the JSON value of a member of an object and returns its length, or 0.
static uint32_t value(const char *json, uint32_t len, const char *key, uint32_t k, const char **at) {
  uint32_t start = 0;
  int depth = 0;
  for (uint32_t i = 0; i < len; i++) {
    char c = json[i];
    if (c == '"') {
      uint32_t open = i++;
      for (; i < len && json[i] != '"'; i++)
        if (json[i] == '\\') i++;
      if (depth == 1 && !start && i - open - 1 == k && !memcmp(json + open + 1, key, k)) {
        uint32_t p = i + 1;
        while (p < len && json[p] == ' ') p++;
        if (p < len && json[p] == ':') start = i = p;
      }
    } else if (start && depth == 1 && (c == ',' || c == '}')) {
      do start++;
      while (json[start] == ' ');
      *at = json + start;
      return i - start;
    } else if (c == '{' || c == '[') depth++;
    else if (c == '}' || c == ']') depth--;
  }
  return 0;
}

// filled writes a text with its placeholders replaced.
static void filled(const char *s, const char *with, uint32_t len) {
  for (; *s; s++) {
    if (*s == '\'') say("\"", 1);
    else if (*s != '$') say(s, 1);
    else {
      const char *v;
      uint32_t k = strspn(s + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
      uint32_t n = value(with, len, s + 1, k, &v);
      if (n > 2) say(v + 1, n - 2);
      s += k;
    }
  }
}

static uint64_t said(void) {
  uint64_t packed = (uint64_t)(uintptr_t)out << 32 | used;
  out = 0;
  used = room = 0;
  return packed;
}

// step makes one call and returns the reply.
static uint64_t step(const struct step *s, const char *with, uint32_t len) {
  say_text("{\"tool\":\"");
  say_text(s->tool);
  say_text("\",\"params\":");
  filled(s->params, with, len);
  if (s->options) {
    say_text(",\"options\":");
    filled(s->options, with, len);
  }
  say_text("}");
  uint64_t question = said();
  return call_tool((const char *)(uintptr_t)(question >> 32), (uint32_t)question);
}

EXPORT("parley_call") uint64_t parley_call(const char *request, uint32_t len) {
  const char *tool, *params, *way, *with = "{}";
  uint32_t t = value(request, len, "tool", 4, &tool), p = value(request, len, "params", 6, &params);
  uint32_t w = value(params, p, "way", 3, &way), h = value(params, p, "with", 4, &with);

  if (t == 6 && !memcmp(tool, "\"ways\"", t)) {
    say_text("{\"ok\":true,\"result\":[");
    for (int i = 0, n = 0; i < count; i++) {
      if (i && !strcmp(steps[i].way, steps[i - 1].way)) continue;
      say_text(n++ ? ",\"" : "\"");
      say_text(steps[i].way);
      say_text("\"");
    }
    say_text("]}");
    return said();
  }

  uint64_t answers[16];
  int n = 0;
  for (int i = 0; i < count && n < 16; i++)
    if (w == strlen(steps[i].way) + 2 && !memcmp(way + 1, steps[i].way, w - 2)) answers[n++] = step(&steps[i], with, h);
  say_text("{\"ok\":true,\"result\":{\"answers\":[");
  for (int i = 0; i < n; i++) {
    if (i) say(",", 1);
    say((const char *)(uintptr_t)(answers[i] >> 32), (uint32_t)answers[i]);
  }
  say_text("]}}");
  return said();
}
