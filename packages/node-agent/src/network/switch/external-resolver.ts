/** Names of the world, as the resolver of this host knows them: what `externalName` of a Service means. */
import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { isIP } from 'node:net';
import { DNS_PORT, type ExternalAnswer } from './name-server.ts';

const TIMEOUT_MS = 2000;
const TRIES = 2;
const NO_SUCH_NAME = 3;
const SERVER_FAILED = 2;

/** Asks for IPv4 addresses; never rejects. `servers`: others than those of the host, `HOST:PORT`. */
export async function resolveExternal(name: string, servers?: readonly string[]): Promise<ExternalAnswer> {
  // Anew for each question: a host on the road has another resolver tomorrow.
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES });
  if (servers) resolver.setServers(servers);
  try {
    return { addresses: await resolver.resolve4(name), code: 0 };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return { addresses: [], code: code === 'ENODATA' ? 0 : code === 'ENOTFOUND' ? NO_SUCH_NAME : SERVER_FAILED };
  }
}

/** The servers that this host asks. */
export const hostServers = (): string[] => new Resolver().getServers();

/** Flags of an answer: that it is one, and whether it says something (RFC 1035, 4.1.1). */
const isAnswer = (message: Uint8Array): boolean => ((message[2] ?? 0) & 0x80) !== 0;
const NO_ANSWERS: ReadonlySet<number> = new Set([SERVER_FAILED, 4, 5]);

/** Sends a question as it is to one server, `ADDRESS` or `ADDRESS:PORT`. */
async function askServer(question: Uint8Array, server: string): Promise<Uint8Array> {
  const url = new URL(`udp://${isIP(server) === 6 ? `[${server}]` : server}`);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const socket = createSocket(isIP(host) === 6 ? 'udp6' : 'udp4');
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  try {
    socket.connect(Number(url.port || DNS_PORT), host);
    await once(socket, 'connect', { signal });
    socket.send(question);
    for (;;) {
      const [message] = (await once(socket, 'message', { signal })) as [Uint8Array];
      if (message[0] === question[0] && message[1] === question[1] && isAnswer(message)) return message;
    }
  } finally {
    socket.close();
  }
}

/** The answer of the first server that has one, as a stub resolver finds it; undefined when none has. */
export async function askServers(question: Uint8Array, servers: readonly string[]): Promise<Uint8Array | undefined> {
  let last: Uint8Array | undefined;
  for (const server of servers) {
    const answer = await askServer(question, server).catch(() => undefined);
    if (answer && !NO_ANSWERS.has((answer[3] ?? 0) & 15)) return answer;
    last = answer ?? last;
  }
  return last;
}
