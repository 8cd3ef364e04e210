onmessage = event => postMessage(event.data);
