/** Names of the world, as the resolver of this host knows them: what `externalName` of a Service means. */
import { Resolver } from 'node:dns/promises';
import type { WorldAnswer } from './name-server.ts';

const TIMEOUT_MS = 2000;
const TRIES = 2;
const NO_SUCH_NAME = 3;
const SERVER_FAILED = 2;

/** Asks for IPv4 addresses; never rejects. `servers`: others than those of the host, `HOST:PORT`. */
export async function resolveWorld(name: string, servers?: readonly string[]): Promise<WorldAnswer> {
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
