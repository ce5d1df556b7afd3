/** Real Git repositories for tests, and servers of them on loopback: HTTP by git's own http-backend, TLS, a password. */
import { execFile, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const exec = promisify(execFile);

export interface GitRepository {
  /** The working directory; its `.git` is what is fetched from. */
  readonly path: string;
  /** file:// */
  readonly url: string;
  /** Writes the files (null = removes one), commits, and gives the commit. What is not named stays. */
  commit(files: Readonly<Record<string, string | null>>): Promise<string>;
  git(...args: readonly string[]): Promise<string>;
  remove(): void;
}

const ENV = {
  PATH: process.env['PATH'] ?? '',
  LC_ALL: 'C',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_AUTHOR_NAME: 'author',
  GIT_AUTHOR_EMAIL: 'author@example.org',
  GIT_COMMITTER_NAME: 'author',
  GIT_COMMITTER_EMAIL: 'author@example.org',
};

/** Makes an empty repository with branch `main`. */
export async function createRepository(): Promise<GitRepository> {
  const path = mkdtempSync(join(tmpdir(), 'coracle-git-'));
  const git = async (...args: readonly string[]): Promise<string> =>
    (await exec('git', ['-C', path, ...args], { env: ENV, maxBuffer: 64 * 1024 * 1024 })).stdout.trim();
  await git('init', '--quiet', '--initial-branch=main');
  return {
    path,
    url: `file://${path}/.git`,
    git,
    async commit(files) {
      for (const [name, content] of Object.entries(files)) {
        const at = join(path, name);
        if (content === null) rmSync(at, { force: true });
        else {
          mkdirSync(dirname(at), { recursive: true });
          writeFileSync(at, content);
        }
      }
      await git('add', '--all');
      await git('commit', '--quiet', '--allow-empty', '--message=change');
      return git('rev-parse', 'HEAD');
    },
    remove: () => rmSync(path, { recursive: true, force: true }),
  };
}

export interface GitServer {
  /** Of the repository. */
  readonly url: string;
  /** `METHOD path` of each request so far. */
  readonly requests: readonly string[];
  /** While set, every request is answered so. */
  down: number | undefined;
  /** While set, requests are passed there. */
  redirect: string | undefined;
  stop(): Promise<void>;
}

export interface GitServerOptions {
  readonly username?: string;
  readonly password?: string;
  /** `NAME=VALUE` that every request must bring. */
  readonly cookie?: string;
  /** PEM. */
  readonly tls?: { readonly cert: string; readonly key: string };
}

/** Serves a repository by the smart HTTP protocol. */
export async function serveRepository(repository: GitRepository, options: GitServerOptions = {}): Promise<GitServer> {
  const requests: string[] = [];
  const wanted = options.password && `Basic ${btoa(`${options.username}:${options.password}`)}`;
  const state: { down: number | undefined; redirect: string | undefined } = { down: undefined, redirect: undefined };
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    requests.push(`${request.method} ${request.url}`);
    if (state.down !== undefined) return void response.writeHead(state.down).end('down');
    if (state.redirect !== undefined)
      return void response.writeHead(302, { location: `${state.redirect}${request.url}` }).end();
    if (wanted && request.headers.authorization !== wanted)
      return void response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end();
    if (options.cookie && !(request.headers.cookie ?? '').split('; ').includes(options.cookie))
      return void response.writeHead(403).end('no cookie');
    const [path = '', query = ''] = (request.url ?? '').split('?');
    const backend = spawn('git', ['http-backend'], {
      env: {
        ...ENV,
        GIT_PROJECT_ROOT: repository.path,
        GIT_HTTP_EXPORT_ALL: '1',
        PATH_INFO: path,
        QUERY_STRING: query,
        REQUEST_METHOD: request.method,
        CONTENT_TYPE: request.headers['content-type'] ?? '',
        ...(request.headers['content-encoding'] && { HTTP_CONTENT_ENCODING: request.headers['content-encoding'] }),
        ...(request.headers['git-protocol'] && { GIT_PROTOCOL: String(request.headers['git-protocol']) }),
      },
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    backend.stdin.on('error', () => {});
    request.pipe(backend.stdin);
    const chunks: Buffer[] = [];
    backend.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    backend.on('close', () => {
      const all = Buffer.concat(chunks);
      const end = all.indexOf('\r\n\r\n');
      let status = 200;
      const headers: Record<string, string> = {};
      for (const line of all.subarray(0, end).toString().split('\r\n')) {
        const [name = '', value = ''] = line.split(': ');
        if (name === 'Status') status = Number.parseInt(value, 10);
        else headers[name] = value;
      }
      response.writeHead(status, headers).end(all.subarray(end + 4));
    });
  };
  const server: Server = options.tls ? createTlsServer(options.tls, answer) : createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return Object.assign(state, {
    url: `${options.tls ? 'https' : 'http'}://127.0.0.1:${port}/.git`,
    requests,
    stop: () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  });
}
