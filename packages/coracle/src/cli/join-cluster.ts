/** The cluster of `coracle node join`: by address, token and a way to know its CA; kept for the next start. */
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { createClient } from '@coracle/client/create-client';
import { systemClock } from '@coracle/runtime/clock/clock';
import { createHttpsTransport } from '@coracle/runtime/http/https-transport';
import { publicKeyHash, readPeerChain } from '@coracle/runtime/http/peer-chain';
import { lifeLeft } from '../compose/node-signing-request.ts';
import type { DataDir } from '../config/data-dir.ts';
import type { PairStore } from '../config/pki.ts';
import { VERSION } from '../config/version.ts';
import { readFileIfAny, writePrivateFile } from '../config/write-file.ts';
import { type CommandContext, CommandError, failingAs, textFlag, UsageError } from './command.ts';

/** What is written once the node has joined. It holds no secret. */
interface Joined {
  readonly server: string;
  readonly ca: string;
  readonly name: string;
  /** Where the node is served, when that was given. */
  readonly address?: string | undefined;
}

export type JoinedCluster = Awaited<ReturnType<typeof joinCluster>>;

const HASH = /^sha256:[0-9a-f]{64}$/;
const TOKEN = /^[a-z0-9]{6}\.[a-z0-9]{16}$/;

/** Reads the flags, or what an earlier join wrote down. Throws UsageError, CommandError. */
export async function joinCluster(
  { flags, signal }: CommandContext,
  { dir, pairs }: { readonly dir: DataDir; readonly pairs: PairStore },
) {
  const path = join(dir.root, 'joined.json');
  const before = readJoined(path);
  const server = textFlag(flags, 'server') ?? before?.server;
  if (server === undefined)
    throw new UsageError('node join needs --server URL and --token T (coracle token create prints the whole command)');
  if (!/^https:\/\//.test(server) || !URL.canParse(server))
    throw new UsageError(`--server takes an https:// address, not "${server}"`);
  const token = readToken(flags);
  const ca = await findCa(server, { flags, signal }, before);
  const name = textFlag(flags, 'name') ?? before?.name;
  const held = name === undefined ? undefined : pairs.read(`node-${name}-client`);
  const isKnown = held !== undefined && lifeLeft(held, systemClock.now()) > 0;
  if (token === undefined && !isKnown)
    throw new UsageError(
      'node join needs --token T: this directory holds no certificate of the node that is still good',
    );
  const handler = createHttpsTransport({ server, ca });
  // A node that is known needs its token no more, and that may have ended long ago.
  const client = createClient(handler, { userAgent: `coracle/${VERSION}`, ...(token && !isKnown && { token }) });
  return {
    server,
    ca,
    /** Name the node was given, or had when it joined before. */
    name,
    /** Address the node was configured to be served on, when it joined before. */
    address: before?.address,
    client,
    /** Writes down what a later start needs. */
    remember: (node: Pick<Joined, 'name' | 'address'>) =>
      writePrivateFile(path, `${JSON.stringify({ server, ca, ...node } satisfies Joined)}\n`),
    close: async () => void (await handler.close()),
  };
}

function readToken(flags: CommandContext['flags']): string | undefined {
  const file = textFlag(flags, 'token-file');
  const text = file === undefined ? textFlag(flags, 'token') : readGiven(file, '--token-file').trim();
  if (text !== undefined && !TOKEN.test(text))
    throw new UsageError('a token is six and sixteen small letters or digits, with a dot between');
  return text;
}

async function findCa(
  server: string,
  { flags, signal }: Pick<CommandContext, 'flags' | 'signal'>,
  before: Joined | undefined,
): Promise<string> {
  const file = textFlag(flags, 'ca');
  const hash = textFlag(flags, 'ca-hash');
  if (hash !== undefined && !HASH.test(hash)) throw new UsageError('--ca-hash takes sha256: and 64 hex digits');
  if (file !== undefined) {
    const pem = readGiven(file, '--ca');
    let own: string;
    try {
      own = publicKeyHash(pem);
    } catch {
      throw new CommandError(`--ca: ${file} holds no certificate in PEM`);
    }
    if (hash !== undefined && own !== hash)
      throw new CommandError(`--ca-hash: ${file} has a different public key, ${own}`);
    return pem;
  }
  if (hash !== undefined) {
    const found = (await readPeerChain(server, signal)).find((one) => one.isCa && one.hash === hash);
    if (!found)
      throw new CommandError(
        `${server} shows no CA with the public key ${hash}: it is another cluster, or the connection is intercepted`,
      );
    return found.pem;
  }
  if (before !== undefined && before.server === server) return before.ca;
  throw new UsageError('node join needs --ca-hash HASH or --ca FILE, to verify the cluster');
}

function readJoined(path: string): Joined | undefined {
  const text = readFileIfAny(path);
  if (text === undefined) return undefined;
  try {
    const { server, ca, name, address } = JSON.parse(text) as Partial<Joined>;
    if (typeof server !== 'string' || typeof ca !== 'string' || typeof name !== 'string') return undefined;
    return { server, ca, name, ...(typeof address === 'string' && isIP(address) !== 0 && { address }) };
  } catch {
    return undefined;
  }
}

const readGiven = (file: string, flag: string): string =>
  failingAs(CommandError, `${flag}: `, () => readFileSync(file, 'utf8'));
