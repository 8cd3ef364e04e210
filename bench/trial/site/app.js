// The page has what the examples of commands ask for: storage, workers, a shadow root, a popover and a detached tree.
class Card { constructor(name) { this.name = name; } greet() { return 'Hello ' + this.name; } }
globalThis.Card = Card;
globalThis.card = new Card('harbour');
document.querySelector('#shadow').attachShadow({mode: 'open'}).innerHTML = '<b>in the shadow</b>';
document.querySelector('#send').addEventListener('click', () => { document.title = 'Sent'; });
document.body.addEventListener('keydown', () => {});
document.querySelector('[popovertarget]').click();
globalThis.detached = document.createElement('ul');
detached.innerHTML = '<li>item</li>';
localStorage.setItem('theme', 'dark');
sessionStorage.setItem('draft', 'text');
document.cookie = 'visited=1; max-age=86400';

// TODO: more than two.
function add(a, b) {
  return a + b;
}
add(1, 2);

const database = () => new Promise((resolve, reject) => {
  const request = indexedDB.open('shop', 1);
  request.onupgradeneeded = () => {
    const store = request.result.createObjectStore('orders', {keyPath: 'id'});
    store.createIndex('by-name', 'name');
    store.put({id: 1, name: 'ada'});
    store.put({id: 2, name: 'bob'});
  };
  request.onsuccess = () => { request.result.close(); resolve(); };
  request.onerror = () => reject(request.error);
});

globalThis.ready = (async () => {
  await database();
  const cache = await caches.open('files');
  await cache.add('/main.css');
  await navigator.serviceWorker.register('/worker.js');
  await navigator.serviceWorker.ready;
  const root = await navigator.storage.getDirectory();
  const folder = await root.getDirectoryHandle('photos', {create: true});
  await folder.getFileHandle('a.txt', {create: true});
  globalThis.task = new Worker('/task.js');
  task.postMessage('ping');
  await new Promise(resolve => { task.onmessage = resolve; });
  await (await fetch('/icon.png')).arrayBuffer();
  await (await fetch('/status.txt', {cache: 'reload'})).text();
  return 'ready';
})();
