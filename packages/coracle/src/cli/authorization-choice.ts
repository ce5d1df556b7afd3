/** Who is asked what users may do, from the flags of `coracle up`; `open-authorizers.ts` reads the files they name. */
import { resolve } from 'node:path';
import type { ConfiguredAuthorizer } from '@coracle/apiserver/auth/authorization-configuration';
import { AUTHORIZATION_MODES } from '@coracle/apiserver/auth/authorization-modes';
import type { AuthorizationWebhook } from '@coracle/apiserver/auth/webhook-authorizer';
import { AUTHORIZATION_FLAGS } from './access-flags.ts';
import { type FlagValues, textFlag, UsageError } from './command.ts';
import { durationFlag } from './duration-flag.ts';

const MODE = 'authorization-mode';
export const WEBHOOK_FILE_FLAG = 'authorization-webhook-config-file';
const VERSION = 'authorization-webhook-version';
export const CONFIG_FLAG = 'authorization-config';

export type Mode = ConfiguredAuthorizer['type'];

export type AuthorizationChoice =
  | { readonly config: string }
  | {
      readonly modes: readonly Mode[];
      readonly webhook?: {
        readonly file: string;
        readonly version: AuthorizationWebhook['version'];
        readonly authorizedMs: number;
        readonly unauthorizedMs: number;
      };
    };

/** Undefined when no flag was given. Throws UsageError in upstream's words. */
export function authorizationChoice(flags: FlagValues): AuthorizationChoice | undefined {
  const given = Object.keys(AUTHORIZATION_FLAGS).filter((name) => flags[name] !== undefined);
  if (given.length === 0) return undefined;
  const config = textFlag(flags, CONFIG_FLAG);
  if (config !== undefined) {
    if (given.length > 1)
      throw new UsageError(
        `--${CONFIG_FLAG} can not be specified when --${MODE} or --authorization-webhook-* flags are defined`,
      );
    return { config: resolve(config) };
  }
  const modes = readModes(textFlag(flags, MODE) ?? 'Node,RBAC');
  const file = textFlag(flags, WEBHOOK_FILE_FLAG);
  const version = textFlag(flags, VERSION) ?? 'v1beta1';
  if (version !== 'v1' && version !== 'v1beta1')
    throw new UsageError(`--${VERSION} takes v1 or v1beta1, not ${JSON.stringify(version)}`);
  if (modes.includes('Webhook') && file === undefined)
    throw new UsageError(`${MODE} Webhook's authorization config file not passed`);
  if (!modes.includes('Webhook') && file !== undefined)
    throw new UsageError(`cannot specify --${WEBHOOK_FILE_FLAG} without mode Webhook`);
  const authorizedMs = durationFlag(flags, 'authorization-webhook-cache-authorized-ttl', { or: 300_000 });
  const unauthorizedMs = durationFlag(flags, 'authorization-webhook-cache-unauthorized-ttl', { or: 30_000 });
  return {
    modes,
    ...(file !== undefined && { webhook: { file: resolve(file), version, authorizedMs, unauthorizedMs } }),
  };
}

function readModes(text: string): Mode[] {
  const modes = text.split(',').map((mode) => mode.trim());
  for (const mode of modes) {
    if (!AUTHORIZATION_MODES.some((known) => known === mode))
      throw new UsageError(`${MODE} ${JSON.stringify(mode)} is not a valid mode`);
    if (mode === 'ABAC') throw new UsageError(`${MODE} ABAC is not served; use RBAC`);
  }
  const list = modes.map((mode) => JSON.stringify(mode)).join(' ');
  if (new Set(modes).size !== modes.length) throw new UsageError(`${MODE} [${list}] has mode specified more than once`);
  return modes as Mode[];
}
