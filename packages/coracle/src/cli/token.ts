/** `coracle token`: the bootstrap tokens by which other machines' agents join. */
import { randomInt } from 'node:crypto';
import { decodeBase64, encodeBase64 } from '@coracle/apimachinery/meta/base64';
import { SECRETS } from '@coracle/apimachinery/types/resource-types';
import type { Secret } from '@coracle/apimachinery/types/types';
import { isNotFound } from '@coracle/client/api-failure';
import { systemClock } from '@coracle/runtime/clock/clock';
import { publicKeyHash } from '@coracle/runtime/http/peer-chain';
import { type Cluster, clusterFrom } from '../config/cluster.ts';
import { type CommandContext, CommandError, textFlag, UsageError } from './command.ts';

const NAMESPACE = 'kube-system';
const TYPE = 'bootstrap.kubernetes.io/token';
const PREFIX = 'bootstrap-token-';
const DEFAULT_TTL = '24h';
const UNIT_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789';

/** `coracle token create | list | delete ID`. */
export async function token(context: CommandContext): Promise<number> {
  const [act = '', ...rest] = context.words;
  const acts: Readonly<Record<string, (cluster: Cluster) => Promise<void>>> = {
    create: (cluster) => create(context, cluster),
    list: (cluster) => list(context, cluster),
    delete: (cluster) => remove(context, cluster, rest[0] ?? ''),
  };
  const run = Object.hasOwn(acts, act) ? acts[act] : undefined;
  if (!run || rest.length !== (act === 'delete' ? 1 : 0))
    throw new UsageError('usage: coracle token create | list | delete ID');
  readTtl(context); // a wrong one is reported before anything is reached for
  await using cluster = await clusterFrom(context);
  await run(cluster);
  return 0;
}

/** Milliseconds; undefined for a token without an end. Throws UsageError. */
function readTtl({ flags }: CommandContext): number | undefined {
  const text = textFlag(flags, 'ttl') ?? DEFAULT_TTL;
  if (text === '0') return undefined;
  const [, amount = '', unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  if (amount === '' || Number(amount) === 0)
    throw new UsageError(`--ttl takes a time as 30m, 24h or 7d, or 0 for no end, not "${text}"`);
  return Number(amount) * UNIT_MS[unit]!;
}

async function create(context: CommandContext, cluster: Cluster): Promise<void> {
  const ttl = readTtl(context);
  const draw = (length: number): string => Array.from({ length }, () => LETTERS[randomInt(LETTERS.length)]).join('');
  const id = draw(6);
  const secret = draw(16);
  const expires = ttl === undefined ? undefined : `${new Date(systemClock.now() + ttl).toISOString().slice(0, 19)}Z`;
  const data: Record<string, string> = {
    'token-id': id,
    'token-secret': secret,
    'usage-bootstrap-authentication': 'true',
    'usage-bootstrap-signing': 'true',
    description: textFlag(context.flags, 'description') ?? 'made by coracle token create',
    ...(expires !== undefined && { expiration: expires }),
  };
  await cluster.client.create(SECRETS, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: `${PREFIX}${id}`, namespace: NAMESPACE },
    type: TYPE,
    data: Object.fromEntries(
      Object.entries(data).map(([key, text]) => [key, encodeBase64(new TextEncoder().encode(text))]),
    ),
  } as Secret);
  const text = `${id}.${secret}`;
  const hash = cluster.ca && publicKeyHash(cluster.ca);
  const join = `coracle node join --server ${cluster.server} --token ${text}${hash ? ` --ca-hash ${hash}` : ''}`;
  if (context.flags['json'] === true) {
    const json = { token: text, expires: expires ?? null, server: cluster.server, caHash: hash, join };
    return void context.print(JSON.stringify(json));
  }
  context.print(join);
  context.note(expires === undefined ? 'the token has no end; delete it when it is used' : `good until ${expires}`);
}

async function list({ flags, print }: CommandContext, cluster: Cluster): Promise<void> {
  const { items } = await cluster.client.list(SECRETS, { namespace: NAMESPACE, fieldSelector: `type=${TYPE}` });
  const rows = items.map(({ data = {} }) => {
    const field = (key: string): string => new TextDecoder().decode(decodeBase64(data[key] ?? ''));
    // The secret half is not shown: a list ends in logs and screenshots.
    return { id: field('token-id'), expires: field('expiration') || null, description: field('description') };
  });
  if (flags['json'] === true) print(JSON.stringify(rows));
  else if (rows.length === 0) print('no tokens (make one: coracle token create)');
  else print(rows.map(({ id, expires, description }) => `${id}  ${expires ?? 'no end'}  ${description}`).join('\n'));
}

async function remove({ flags, print }: CommandContext, cluster: Cluster, id: string): Promise<void> {
  if (!/^[a-z0-9]{6}(\.[a-z0-9]{16})?$/.test(id))
    throw new UsageError(`a token's ID is six small letters or digits, not ${JSON.stringify(id)}`);
  const deleted = id.slice(0, 6);
  try {
    await cluster.client.delete(SECRETS, { namespace: NAMESPACE, name: `${PREFIX}${deleted}` });
  } catch (error) {
    throw isNotFound(error) ? new CommandError(`there is no token ${deleted}`) : error;
  }
  print(flags['json'] === true ? JSON.stringify({ deleted }) : `token ${deleted} is deleted`);
}
