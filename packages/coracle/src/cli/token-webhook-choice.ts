/** The token webhook that `coracle up` asks, from its flags and the kubeconfig they name. */
import { resolve } from 'node:path';
import type { TokenWebhook } from '@coracle/apiserver/auth/webhook-tokens';
import { clusterFrom } from '../config/cluster.ts';
import { CommandError, type FlagValues, textFlag, UsageError } from './command.ts';
import { durationFlag } from './duration-flag.ts';

const FILE = 'authentication-token-webhook-config-file';
const VERSION = 'authentication-token-webhook-version';
const CACHE = 'authentication-token-webhook-cache-ttl';
const CACHE_MS = 120_000;

export interface TokenWebhookChoice {
  readonly file: string;
  readonly version: TokenWebhook['version'];
  readonly cacheMs: number;
}

/** Undefined when no webhook is asked. Throws UsageError. */
export function tokenWebhookChoice(flags: FlagValues): TokenWebhookChoice | undefined {
  const file = textFlag(flags, FILE);
  const version = textFlag(flags, VERSION) ?? 'v1beta1';
  if (version !== 'v1' && version !== 'v1beta1')
    throw new UsageError(`--${VERSION} takes v1 or v1beta1, not ${JSON.stringify(version)}`);
  // Without a unit it was seconds before it was a duration.
  const cacheMs = durationFlag(flags, CACHE, { or: CACHE_MS, bareSeconds: true });
  return file === undefined ? undefined : { file: resolve(file), version, cacheMs };
}

/** Reads the kubeconfig; nothing is connected yet. Throws CommandError of one line. */
export async function tokenWebhook({ file, version, cacheMs }: TokenWebhookChoice): Promise<TokenWebhook> {
  try {
    const choice = { flags: { kubeconfig: file }, environment: {}, single: true };
    const { server, handler } = await clusterFrom(choice);
    // The URL of the webhook stands where a cluster's would: with its path, which the transport puts in front.
    const path = (URL.parse(server)?.pathname ?? '/') === '/' ? '/' : '';
    return { handler, path, headers: {}, version, cacheMs };
  } catch (error) {
    throw new CommandError(`--${FILE}: ${(error as Error).message}`);
  }
}
