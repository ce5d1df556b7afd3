/** Serves one file on loopback, in a process of its own: `import-server.ts FILE`. Prints its URL. */
import { createReadStream, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const [file = ''] = process.argv.slice(2);
const READ_BYTES = 1024 * 1024;
const server = createServer((_, response) => {
  response.writeHead(200, { 'content-length': statSync(file).size, etag: '"1"' });
  createReadStream(file, { highWaterMark: READ_BYTES }).pipe(response);
});
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}/image\n`);
});
