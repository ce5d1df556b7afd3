import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2, constants } from 'node:http2';
import { after, before, type TestContext, test } from 'node:test';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { WebSocket } from 'ws';
import { createAuthority, openAuthority } from '../../../apiserver/src/auth/certificate-authority.ts';
import { systemClock } from '../clock/clock.ts';
import { silentLogger } from '../log/log.ts';
import type { ApiHandler, ApiRequest, ApiResponse, ByteSink } from './seam.ts';
import { startTlsServer, type TlsServer } from './tls-server.ts';

const LIMIT = 64 * 1024;
const HOST = '127.0.0.1';

interface Identity {
  readonly certificate: string;
  readonly key: string;
}

let ca: string;
let serving: Identity;
let trusted: Identity;
let unknown: Identity;
let outdated: Identity;
let server: TlsServer;
/** Requests seen by the handler, newest last. */
const seen: ApiRequest[] = [];
/** What a test waits for: the sink of a stream, called by path. */
const streams = new Map<string, (sink: ByteSink) => void>();
const last = (): ApiRequest => seen.at(-1)!;

const handler: ApiHandler = async (request): Promise<ApiResponse> => {
  seen.push(request);
  const { path } = request;
  if (path === '/echo') {
    const digest = createHash('sha256').update(request.body).digest('hex');
    const answer = { method: request.method, query: request.query, size: request.body.length, digest };
    return { status: 200, headers: { 'content-type': 'application/json' }, body: Buffer.from(JSON.stringify(answer)) };
  }
  if (path === '/parts') {
    const part = new Uint8Array(10_000).fill(7);
    return { status: 200, headers: { connection: 'keep-alive' }, body: Array.from({ length: 100 }, () => part) };
  }
  if (path.startsWith('/stream')) {
    return { status: 200, headers: { 'content-type': 'text/plain' }, body: (sink) => streams.get(path)!(sink) };
  }
  if (path === '/socket') {
    return {
      status: 101,
      headers: {},
      upgrade: {
        protocol: 'plain.kubevirt.io',
        accept: (socket) => {
          socket.onMessage((data, binary) => socket.send(binary ? data : `text ${Buffer.from(data).toString()}`));
        },
      },
    };
  }
  if (path === '/bytes') {
    return {
      status: 101,
      headers: { 'x-own': 'yes', connection: 'close' },
      upgrade: {
        protocol: 'SPDY/3.1',
        raw: true,
        accept: (socket) => {
          socket.onMessage((data) => {
            socket.send(Buffer.from(data).toString().toUpperCase());
            if (Buffer.from(data).includes('!')) socket.close();
          });
        },
      },
    };
  }
  if (path === '/cookies') {
    return {
      status: 200,
      headers: {},
      cookies: ['a=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT', 'b=2'],
      body: Buffer.from('x'),
    };
  }
  if (path === '/crash') throw new Error('a bug');
  if (path === '/hang') return new Promise(() => {});
  return { status: 403, headers: { 'content-type': 'text/plain', 'x-why': 'no' }, body: Buffer.from('you may not\n') };
};

before(async () => {
  const pair = await createAuthority(systemClock);
  const authority = await openAuthority(pair, systemClock);
  const other = await openAuthority(await createAuthority(systemClock), systemClock);
  const lastYear = { ...systemClock, now: () => Date.now() - 400 * 86_400_000 };
  const past = await openAuthority(pair, lastYear);
  ca = authority.certificate;
  const client = { commonName: 'jane', organizations: ['dev', 'ops'], usage: 'client', days: 30 } as const;
  [serving, trusted, unknown, outdated] = await Promise.all([
    authority.issue({ commonName: 'server', ipAddresses: [HOST], usage: 'server', days: 1 }),
    authority.issue(client),
    other.issue(client),
    past.issue(client),
  ]);
  server = await listen();
});
after(() => server.close());

const listen = (): Promise<TlsServer> =>
  startTlsServer({
    handler,
    host: HOST,
    port: 0,
    tls: { ...serving, clientCa: ca },
    bodyLimit: LIMIT,
    log: silentLogger,
  });

/** A bare TLS connection that speaks HTTP/1.1 byte by byte. */
async function dial(t: TestContext, options: { identity?: Identity; to?: TlsServer } = {}): Promise<Wire> {
  const { identity, to = server } = options;
  const socket = connectTls({
    host: HOST,
    port: to.port,
    ca,
    ALPNProtocols: ['http/1.1'],
    ...(identity && { cert: identity.certificate, key: identity.key }),
  });
  t.after(() => socket.destroy());
  await new Promise<void>((done, fail) => {
    socket.once('secureConnect', done);
    socket.once('error', fail);
  });
  return new Wire(socket);
}

class Wire {
  readonly socket: TLSSocket;
  readonly ended: Promise<void>;
  #text = '';
  #wake = (): void => {};
  #over = false;

  constructor(socket: TLSSocket) {
    this.socket = socket;
    socket.setEncoding('latin1');
    socket.on('data', (chunk: string) => {
      this.#text += chunk;
      this.#wake();
    });
    socket.on('error', () => {});
    this.ended = new Promise((done) =>
      socket.once('close', () => {
        this.#over = true;
        this.#wake();
        done();
      }),
    );
  }

  send(...lines: string[]): void {
    this.socket.write(lines.join('\r\n'));
  }

  /** Everything received once it matches; rejects when the connection ends before. */
  async until(pattern: RegExp): Promise<string> {
    while (!pattern.test(this.#text)) {
      if (this.#over) throw new Error(`the connection ended without ${pattern}: ${this.#text}`);
      await new Promise<void>((wake) => {
        this.#wake = wake;
      });
    }
    return this.#text;
  }

  /** Everything received until the far end closed. */
  async all(): Promise<string> {
    await this.ended;
    return this.#text;
  }

  take(): string {
    const text = this.#text;
    this.#text = '';
    return text;
  }
}

function openHttp2(t: TestContext, identity?: Identity, to = server): ClientHttp2Session {
  const session = connectHttp2(`https://${HOST}:${to.port}`, {
    ca,
    ...(identity && { cert: identity.certificate, key: identity.key }),
  });
  session.on('error', () => {});
  t.after(() => session.destroy());
  return session;
}

interface Http2Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: Buffer;
}

function ask(
  session: ClientHttp2Session,
  headers: Record<string, string | string[]>,
  body?: Buffer,
): Promise<Http2Answer> {
  const stream = session.request({ ':method': body ? 'POST' : 'GET', ...headers }, { endStream: !body });
  if (body) stream.end(body);
  return answerOf(stream);
}

function answerOf(stream: ClientHttp2Stream): Promise<Http2Answer> {
  return new Promise((done, fail) => {
    const chunks: Buffer[] = [];
    let headers: Record<string, unknown> = {};
    stream.on('response', (received) => {
      headers = received;
    });
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('error', fail);
    stream.on('close', () => {
      if (headers[':status'] === undefined) fail(new Error(`closed without an answer: ${stream.rstCode}`));
      done({ status: Number(headers[':status']), headers, body: Buffer.concat(chunks) });
    });
  });
}

const digest = (data: Uint8Array): string => createHash('sha256').update(data).digest('hex');
const GET = (path: string, ...more: string[]): string =>
  [`GET ${path} HTTP/1.1`, 'Host: x', ...more, '', ''].join('\r\n');

// S-025
// Compat HTTP, P0, yes: TLS 1.2 and newer, `h2` and `http/1.1` on one port
test('HTTP/1.1 and HTTP/2 on one port', async (t) => {
  const wire = await dial(t);
  wire.send(GET('/echo?a=1&b=%2F'));
  const first = await wire.until(/\}$/);
  assert.match(first, /^HTTP\/1\.1 200 OK\r\n/);
  assert.deepEqual([last().method, last().path, last().query], ['GET', '/echo', 'a=1&b=%2F']);
  const session = openHttp2(t);
  const second = await ask(session, { ':path': '/echo?c=2' });
  assert.deepEqual([second.status, JSON.parse(second.body.toString()).query], [200, 'c=2']);
  assert.equal(session.alpnProtocol, 'h2');
});

test('pipelined HTTP/1.1 requests are answered in order, interleaved HTTP/2 ones all at once', async (t) => {
  const wire = await dial(t);
  wire.send(GET('/echo?n=1') + GET('/parts') + GET('/echo?n=2'));
  const text = await wire.until(/"n=2".*\}$/s);
  assert.ok(text.indexOf('n=1') < text.indexOf('\u0007') && text.lastIndexOf('\u0007') < text.indexOf('n=2'));
  const session = openHttp2(t);
  const answers = await Promise.all(Array.from({ length: 50 }, (_, n) => ask(session, { ':path': `/echo?n=${n}` })));
  assert.deepEqual(
    answers.map(({ body }) => JSON.parse(body.toString()).query),
    answers.map((_, n) => `n=${n}`),
  );
});

test('repeated header fields are joined, the raw ones stay as sent', async (t) => {
  const wire = await dial(t);
  wire.send(GET('/echo', 'Impersonate-Group: a', 'Impersonate-Group: b', 'Accept: x', 'accept: y'));
  await wire.until(/\}$/);
  assert.equal(last().headers['impersonate-group'], 'a, b');
  assert.equal(last().headers['accept'], 'x, y');
  assert.deepEqual(last().rawHeaders!.slice(2, 6), ['Impersonate-Group', 'a', 'Impersonate-Group', 'b']);
  await ask(openHttp2(t), { ':path': '/echo', 'impersonate-group': ['a', 'b'] });
  assert.equal(last().headers['impersonate-group'], 'a, b');
  assert.deepEqual(last().rawHeaders!.slice(-4), ['impersonate-group', 'a', 'impersonate-group', 'b']);
});

// S-025
test('bodies arrive whole: with a length, in chunks, in HTTP/2 frames, and a limit of bytes is the limit', async (t) => {
  const body = randomBytes(LIMIT);
  const wire = await dial(t);
  wire.send('POST /echo HTTP/1.1', 'Host: x', `Content-Length: ${body.length}`, '', '');
  wire.socket.write(body);
  assert.ok((await wire.until(/\}$/)).includes(digest(body)));
  wire.take();
  wire.send('POST /echo HTTP/1.1', 'Host: x', 'Transfer-Encoding: chunked', '', '');
  for (let at = 0; at < body.length; at += 5000) {
    const part = body.subarray(at, at + 5000);
    wire.socket.write(`${part.length.toString(16)}\r\n`);
    wire.socket.write(part);
    wire.socket.write('\r\n');
  }
  wire.send('0', '', '');
  assert.ok((await wire.until(/\}$/)).includes(digest(body)));
  const { body: answer } = await ask(openHttp2(t), { ':path': '/echo' }, body);
  assert.equal(JSON.parse(answer.toString()).digest, digest(body));
  const empty = await ask(openHttp2(t), { ':path': '/echo' }, Buffer.alloc(0));
  assert.equal(JSON.parse(empty.body.toString()).size, 0);
});

test('of a body over the limit the handler sees one byte more than the limit, and the connection does not go on', async (t) => {
  const wire = await dial(t);
  // Behind the body stands what must not be taken for a second request.
  const body = Buffer.concat([Buffer.alloc(LIMIT * 4, 'x'), Buffer.from(GET('/second'))]);
  wire.send('POST /echo HTTP/1.1', 'Host: x', `Content-Length: ${body.length}`, '', '');
  wire.socket.write(body);
  const text = await wire.until(/\}/);
  assert.match(text, new RegExp(`"size":${LIMIT + 1}\\b`));
  assert.match(text, /\r\nConnection: close\r\n/i);
  await wire.ended;
  assert.notEqual(last().path, '/second');

  const endless = await dial(t);
  endless.send('POST /echo HTTP/1.1', 'Host: x', 'Transfer-Encoding: chunked', '', '');
  const chunk = `4000\r\n${'y'.repeat(0x4000)}\r\n`;
  for (let i = 0; i < 8; i++) endless.socket.write(chunk);
  assert.match(await endless.until(/\}/), new RegExp(`"size":${LIMIT + 1}\\b`));

  const session = openHttp2(t);
  const big = await ask(session, { ':path': '/echo' }, Buffer.alloc(LIMIT * 3));
  assert.equal(JSON.parse(big.body.toString()).size, LIMIT + 1);
  assert.equal((await ask(session, { ':path': '/echo' })).status, 200, 'the session is of use after that');
});

for (const protocol of ['HTTP/1.1', 'HTTP/2'] as const) {
  test(`${protocol}: a stream feels back-pressure, goes on when read, and is aborted when the client goes away`, async (t) => {
    const path = `/stream-${protocol}`;
    const opened = new Promise<ByteSink>((take) => streams.set(path, take));
    let pause: () => void;
    let resume: () => void;
    let leave: () => void;
    let received = 0;
    if (protocol === 'HTTP/1.1') {
      const { socket } = await dial(t);
      socket.on('data', (chunk: string) => {
        received += chunk.length;
      });
      socket.write(GET(path));
      [pause, resume, leave] = [() => void socket.pause(), () => void socket.resume(), () => void socket.destroy()];
    } else {
      const stream = openHttp2(t).request({ ':path': path });
      stream.on('error', () => {});
      stream.on('data', (chunk: Buffer) => {
        received += chunk.length;
      });
      [pause, resume, leave] = [
        () => void stream.pause(),
        () => void stream.resume(),
        () => stream.close(constants.NGHTTP2_CANCEL),
      ];
    }
    const sink = await opened;
    assert.equal(sink.write(Buffer.from('first')), true);
    while (received < 5) await new Promise((wake) => setTimeout(wake, 1));

    pause();
    const block = new Uint8Array(64 * 1024);
    let sent = 5;
    let drained: Promise<void> = Promise.resolve();
    let caughtUp = true;
    // Socket buffers on both sides take some megabytes before the writer is held up.
    while (caughtUp) {
      assert.ok(sent < 256 * 1024 * 1024, 'no back-pressure was felt');
      sent += block.length;
      if (sink.write(block)) continue;
      assert.ok(sink.buffered > 0);
      caughtUp = false;
      drained = sink.drained().then(() => {
        caughtUp = true;
      });
      await Promise.race([drained, new Promise((wake) => setTimeout(wake, 100))]);
    }
    resume();
    await drained;
    assert.equal(sink.buffered, 0);
    while (received < sent) await new Promise((wake) => setTimeout(wake, 1));

    assert.equal(sink.signal.aborted, false);
    leave();
    await new Promise<void>((gone) => {
      if (sink.signal.aborted) gone();
      else sink.signal.addEventListener('abort', () => gone());
    });
    assert.equal(sink.write(block), false, 'what is written after the end is dropped');
    sink.end();
    await sink.drained();
  });
}

test('a stream that ends is a whole body, and does not abort', async (t) => {
  const opened: ByteSink[] = [];
  streams.set('/stream-ends', (sink) => {
    opened.push(sink);
    sink.write(Buffer.from('a'));
    sink.write(Buffer.from('b'));
    sink.end();
  });
  const wire = await dial(t);
  wire.send(GET('/stream-ends'));
  assert.match(await wire.until(/0\r\n\r\n$/), /Transfer-Encoding: chunked/i);
  wire.take();
  wire.send(GET('/echo'));
  assert.match(await wire.until(/\}$/), /200 OK/);
  assert.equal(opened[0]!.signal.aborted, false);
  assert.equal((await ask(openHttp2(t), { ':path': '/stream-ends' })).body.toString(), 'ab');
});

test('a request whose client has gone is aborted', async (t) => {
  const wire = await dial(t);
  wire.send(GET('/hang'));
  while (seen.at(-1)?.path !== '/hang') await new Promise((wake) => setTimeout(wake, 1));
  const { signal } = last();
  wire.socket.destroy();
  await new Promise<void>((gone) => signal.addEventListener('abort', () => gone()));

  const stream = openHttp2(t).request({ ':path': '/hang' });
  stream.on('error', () => {});
  while (seen.at(-1)?.signal === signal) await new Promise((wake) => setTimeout(wake, 1));
  const second = last().signal;
  stream.close(constants.NGHTTP2_CANCEL);
  await new Promise<void>((gone) => second.addEventListener('abort', () => gone()));
});

test('a handler that fails is a plain 500 that tells nothing', async (t) => {
  const wire = await dial(t);
  wire.send(GET('/crash'));
  const text = await wire.until(/internal error\n$/);
  assert.match(text, /^HTTP\/1\.1 500 /);
  assert.doesNotMatch(text, /a bug/);
  assert.equal((await ask(openHttp2(t), { ':path': '/crash' })).status, 500);
});

// S-025
test('a granted upgrade is a WebSocket with the chosen sub-protocol', async (t) => {
  const socket = new WebSocket(`wss://${HOST}:${server.port}/socket?x=1`, ['other', 'plain.kubevirt.io'], { ca });
  t.after(() => socket.terminate());
  await new Promise((open, fail) => socket.once('open', open).once('error', fail));
  assert.equal(socket.protocol, 'plain.kubevirt.io');
  assert.deepEqual([last().path, last().query, last().upgradable], ['/socket', 'x=1', true]);
  const next = (): Promise<[Buffer, boolean]> =>
    new Promise((done) => socket.once('message', (data, binary) => done([data as Buffer, binary])));
  const message = randomBytes(200_000);
  socket.send(message);
  const [data, binary] = await next();
  assert.deepEqual([digest(data), binary], [digest(message), true]);
  socket.send('hello');
  const [text, isBinary] = await next();
  assert.deepEqual([text.toString(), isBinary], ['text hello', false]);
  const { signal } = last();
  socket.close();
  await new Promise<void>((gone) => (signal.aborted ? gone() : signal.addEventListener('abort', () => gone())));
});

test('bytes sent right behind the request for an upgrade are not lost', async (t) => {
  const wire = await dial(t);
  // One masked text frame: "hi" under the mask 0.
  const frame = Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0x68, 0x69]);
  const head = GET(
    '/socket',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`,
    'Sec-WebSocket-Protocol: plain.kubevirt.io',
  );
  wire.socket.write(Buffer.concat([Buffer.from(head), frame]));
  assert.match(await wire.until(/text hi/), /^HTTP\/1\.1 101 /);
});

test('an upgrade to something else carries bytes, those right behind the request among them, until either side ends', async (t) => {
  const wire = await dial(t);
  wire.send(`${GET('/bytes', 'Connection: Upgrade', 'Upgrade: spdy/3.1')}early `);
  const text = await wire.until(/EARLY /);
  assert.match(
    text,
    /^HTTP\/1\.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY\/3\.1\r\nx-own: yes\r\n\r\nEARLY $/,
  );
  assert.deepEqual([last().upgradable, last().upgradeTo], [false, 'spdy/3.1']);
  wire.send('late!');
  assert.match(await wire.all(), /EARLY LATE!$/);

  const other = await dial(t);
  other.send(GET('/bytes', 'Connection: Upgrade', 'Upgrade: spdy/3.1'));
  await other.until(/\r\n\r\n/);
  const { signal } = last();
  other.socket.end();
  await new Promise<void>((gone) => (signal.aborted ? gone() : signal.addEventListener('abort', () => gone())));
});

test('bytes are not given to a request that asked for a WebSocket or for a list', async (t) => {
  for (const fields of [
    [
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
    ],
    ['Connection: Upgrade', 'Upgrade: SPDY/3.1, h2c'],
  ]) {
    const wire = await dial(t);
    wire.send(GET('/bytes', ...fields));
    assert.doesNotMatch(await wire.all(), /HTTP\/1\.1 101 Switching/, fields.join());
  }
});

test('each cookie arrives as a header of its own', async (t) => {
  const wire = await dial(t);
  wire.send(GET('/cookies', 'Connection: close'));
  const lines = (await wire.all()).split('\r\n').filter((line) => /^set-cookie:/i.test(line));
  assert.equal(lines.length, 2);
});

test('a message larger than the bound ends the WebSocket', async (t) => {
  const socket = new WebSocket(`wss://${HOST}:${server.port}/socket`, ['plain.kubevirt.io'], { ca });
  t.after(() => socket.terminate());
  await new Promise((open, fail) => socket.once('open', open).once('error', fail));
  socket.on('error', () => {});
  const closed = new Promise<number>((done) => socket.once('close', done));
  socket.send(Buffer.alloc(5 * 1024 * 1024));
  assert.equal(await closed, 1009);
});

test('a refused upgrade is a plain answer, the connection closes, and nothing behind it reaches the handler', async (t) => {
  const wire = await dial(t);
  const count = seen.length;
  wire.send(
    GET(
      '/refused',
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
    ) + GET('/smuggled'),
  );
  const text = await wire.all();
  assert.match(text, /^HTTP\/1\.1 403 Forbidden\r\n/);
  assert.match(text, /\r\nConnection: close\r\n/);
  assert.match(text, /\r\nx-why: no\r\n/);
  assert.ok(text.endsWith('\r\n\r\nyou may not\n'));
  assert.equal(text.match(/HTTP\/1\.1/g)!.length, 1);
  assert.deepEqual(
    seen.slice(count).map(({ path }) => path),
    ['/refused'],
  );
});

test('an upgrade to something else, and one granted that is no valid handshake, end the same way', async (t) => {
  for (const [path, ...fields] of [
    ['/echo', 'Connection: Upgrade', 'Upgrade: SPDY/3.1'],
    ['/echo', 'Connection: Upgrade', 'Upgrade: h2c'],
    ['/socket', 'Connection: Upgrade', 'Upgrade: h2c'],
    ['/socket', 'Connection: Upgrade', 'Upgrade: websocket'],
    [
      '/socket',
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 7',
      'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
    ],
  ] as [string, ...string[]][]) {
    const wire = await dial(t);
    const count = seen.length;
    wire.send(GET(path, ...fields) + GET('/smuggled'));
    const text = await wire.all();
    assert.doesNotMatch(text, /HTTP\/1\.1 101/, fields.join());
    assert.equal(text.match(/HTTP\/1\.1/g)?.length, 1, `${fields.join()}: ${text}`);
    assert.deepEqual(
      seen.slice(count).map((request) => request.path),
      [path],
      fields.join(),
    );
  }
});

// S-025
// Compat HTTP, P0, yes: client certificates are asked for, not required
test('who the client is comes from its verified certificate and nothing else', async (t) => {
  const cases: [string, Identity | undefined, object | undefined][] = [
    ['none', undefined, undefined],
    ['of our CA', trusted, { verified: true, commonName: 'jane', organizations: ['dev', 'ops'] }],
    ['of another CA', unknown, { verified: false, commonName: 'jane', organizations: ['dev', 'ops'] }],
    ['expired', outdated, { verified: false, commonName: 'jane', organizations: ['dev', 'ops'] }],
  ];
  for (const [name, identity, wanted] of cases) {
    await t.test(name, async (st) => {
      const check = (): void => {
        const { fingerprint, notAfter, ...rest } = last().peer.certificate ?? {};
        assert.deepEqual(last().peer.certificate && rest, wanted);
        if (wanted) assert.equal(notAfter! < Date.now(), name === 'expired');
        if (wanted) assert.match(fingerprint!, /^[0-9a-f]{64}$/);
        assert.match(last().peer.address, /^(::ffff:)?127\.0\.0\.1$/);
      };
      const wire = await dial(st, identity ? { identity } : {});
      wire.send(GET('/echo', 'X-Remote-User: root', 'X-Remote-Group: system:masters', 'X-Client-Cert: jane'));
      await wire.until(/\}$/);
      check();
      // The same again on the connection kept alive, and over HTTP/2.
      wire.take();
      wire.send(GET('/echo'));
      await wire.until(/\}$/);
      check();
      await ask(openHttp2(st, identity), { ':path': '/echo', 'x-remote-user': 'root' });
      check();
    });
  }
});

// S-139: Requests that two parsers could read in two ways are refused; floods of headers, streams and connections end
//   themselves, not the server.
test('requests that two parsers could read in two ways are refused, and nothing of them is handled', async (t) => {
  const smuggled = GET('/smuggled');
  const cases: Record<string, string> = {
    'length and chunks': `POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    'two lengths': `POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd${smuggled}`,
    'a length with a sign': `POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: +4\r\n\r\nabcd${smuggled}`,
    'chunked not last': `POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${smuggled}`,
    'space before the colon': `POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n${smuggled}`,
    'a folded line': `POST /echo HTTP/1.1\r\nHost: x\r\nX-A: b\r\n Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n${smuggled}`,
    'a bare line feed': `POST /echo HTTP/1.1\nHost: x\nContent-Length: 0\n\n${smuggled}`,
    'a NUL in a value': `GET /echo HTTP/1.1\r\nHost: x\r\nX-A: b\0c\r\n\r\n${smuggled}`,
    'a chunk size that overflows': `POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000005\r\nabcde\r\n0\r\n\r\n${smuggled}`,
    'no host': 'GET /echo HTTP/1.1\r\n\r\n',
    'not HTTP': 'SSH-2.0-OpenSSH_9.9\r\n',
  };
  for (const [name, bytes] of Object.entries(cases)) {
    await t.test(name, async (st) => {
      const wire = await dial(st);
      const count = seen.length;
      wire.socket.write(bytes);
      const text = await wire.all();
      assert.match(text, /^(HTTP\/1\.1 400 |$)/);
      assert.deepEqual(
        seen
          .slice(count)
          .map(({ path }) => path)
          .filter((path) => path === '/smuggled'),
        [],
      );
    });
  }
});

// S-139
// Compat HTTP, P0, yes: limits: 100 streams, 1 MiB of headers, idle and header time-outs
test('headers of a mebibyte are refused, and the next client is served', async (t) => {
  const wire = await dial(t);
  const count = seen.length;
  wire.send('GET /echo HTTP/1.1', 'Host: x', '');
  for (let i = 0; i < 40; i++) wire.socket.write(`X-Fill-${i}: ${'a'.repeat(32 * 1024)}\r\n`);
  const text = await wire.all();
  assert.match(text, /^HTTP\/1\.1 431 /);
  const stream = openHttp2(t);
  await assert.rejects(
    ask(
      stream,
      Object.fromEntries([
        [':path', '/echo'],
        ...Array.from({ length: 40 }, (_, i) => [`x-fill-${i}`, 'a'.repeat(32 * 1024)]),
      ]),
    ),
  );
  await assert.rejects(
    ask(
      openHttp2(t),
      Object.fromEntries([[':path', '/echo'], ...Array.from({ length: 2000 }, (_, i) => [`x-${i}`, 'a'])]),
    ),
  );
  assert.equal(seen.length, count);
  const next = await dial(t);
  next.send(GET('/echo'));
  await next.until(/200 OK/);
});

// S-139
test('hundreds of idle and half-finished connections do not stop one that asks', async (t) => {
  const own = await listen();
  t.after(() => own.close());
  const idle: Wire[] = [];
  for (let i = 0; i < 200; i += 20)
    idle.push(...(await Promise.all(Array.from({ length: 20 }, () => dial(t, { to: own })))));
  for (const wire of idle.slice(0, 100)) wire.send('GET /echo HTTP/1.1', 'Host: x', 'X-Half: ');
  const wire = await dial(t, { to: own, identity: trusted });
  for (let i = 0; i < 20; i++) {
    wire.take();
    wire.send(GET('/echo'));
    await wire.until(/\}$/);
  }
  assert.equal((await ask(openHttp2(t, trusted, own), { ':path': '/echo' })).status, 200);
});

// S-139
test('a flood of streams opened and reset ends its own session at most', async (t) => {
  const session = openHttp2(t);
  await ask(session, { ':path': '/echo' });
  for (let i = 0; i < 2000 && !session.destroyed; i++) {
    const stream = session.request({ ':path': '/hang' });
    stream.on('error', () => {});
    stream.close(constants.NGHTTP2_CANCEL);
    if (i % 100 === 0) await new Promise((wake) => setImmediate(wake));
  }
  assert.equal((await ask(openHttp2(t), { ':path': '/echo' })).status, 200);
});

test('no TLS below 1.2, and no plain HTTP', async (t) => {
  await assert.rejects(
    new Promise((done, fail) => {
      const socket = connectTls({
        host: HOST,
        port: server.port,
        ca,
        maxVersion: 'TLSv1.1',
        minVersion: 'TLSv1',
        ciphers: 'DEFAULT@SECLEVEL=0',
      });
      t.after(() => socket.destroy());
      socket.once('secureConnect', done);
      socket.once('error', fail);
    }),
  );
  const plain = await fetch(`http://${HOST}:${server.port}/echo`).then(
    () => 'answered',
    () => 'refused',
  );
  assert.equal(plain, 'refused');
});

test('close() ends idle connections at once, lets a busy one finish, and cuts the rest', async (t) => {
  const own = await listen();
  let sink: ByteSink | undefined;
  streams.set('/stream-close', (opened) => {
    sink = opened;
    opened.write(Buffer.from('begun'));
  });
  const idle = await dial(t, { to: own });
  idle.send(GET('/echo'));
  await idle.until(/\}$/);
  const idle2 = openHttp2(t, undefined, own);
  await ask(idle2, { ':path': '/echo' });
  const idle2Closed = new Promise((done) => idle2.once('close', done));
  const busy = await dial(t, { to: own });
  busy.send(GET('/stream-close'));
  await busy.until(/begun/);
  const closing = own.close(60_000);
  await Promise.all([idle.ended, idle2Closed]);
  await assert.rejects(dial(t, { to: own }));
  sink!.write(Buffer.from('more'));
  await busy.until(/more/);
  sink!.end();
  await busy.until(/0\r\n\r\n$/);
  await closing;

  const second = await listen();
  const endless = await dial(t, { to: second });
  endless.send(GET('/hang'));
  const stream = openHttp2(t, undefined, second).request({ ':path': '/hang' });
  stream.on('error', () => {});
  const streamClosed = new Promise((done) => stream.once('close', done));
  const socket = new WebSocket(`wss://${HOST}:${second.port}/socket`, ['plain.kubevirt.io'], { ca });
  await new Promise((open, fail) => socket.once('open', open).once('error', fail));
  socket.on('error', () => {});
  const socketClosed = new Promise((done) => socket.once('close', done));
  await second.close();
  await Promise.all([endless.ended, streamClosed, socketClosed]);
});

test('a port that is taken is an error with its code', async () => {
  await assert.rejects(
    startTlsServer({ handler, host: HOST, port: server.port, tls: { ...serving }, log: silentLogger }),
    { code: 'EADDRINUSE' },
  );
});
