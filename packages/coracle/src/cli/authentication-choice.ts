/** Whose tokens are believed and who may come without one, from the flags of `coracle up`; `open-authentication.ts` reads. */
import { resolve } from 'node:path';
import { OIDC_FLAGS } from './access-flags.ts';
import { type FlagValues, textFlag, UsageError } from './command.ts';

export const CONFIG_FLAG = 'authentication-config';
export const ANONYMOUS_FLAG = 'anonymous-auth';

export interface AuthenticationChoice {
  readonly config?: string;
  /** Undefined when the flag was not given. */
  readonly anonymous?: boolean;
}

/** Undefined when no flag was given. Throws UsageError. */
export function authenticationChoice(flags: FlagValues): AuthenticationChoice | undefined {
  const config = textFlag(flags, CONFIG_FLAG);
  const text = textFlag(flags, ANONYMOUS_FLAG);
  if (text !== undefined && text !== 'true' && text !== 'false')
    throw new UsageError(`--${ANONYMOUS_FLAG} takes true or false, not ${JSON.stringify(text)}`);
  if (config !== undefined && Object.keys(OIDC_FLAGS).some((name) => flags[name] !== undefined))
    throw new UsageError(`${CONFIG_FLAG} file and oidc-* flags are mutually exclusive`);
  if (config === undefined && text === undefined) return undefined;
  return {
    ...(config !== undefined && { config: resolve(config) }),
    ...(text !== undefined && { anonymous: text === 'true' }),
  };
}
