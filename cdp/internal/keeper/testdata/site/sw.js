var here = "service worker"
addEventListener("install", () => skipWaiting())
addEventListener("activate", event => event.waitUntil(clients.claim()))
addEventListener("fetch", event => {
	if (event.request.url.endsWith("/made")) event.respondWith(new Response("made by the worker"))
})
