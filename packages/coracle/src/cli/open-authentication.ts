/** Issuers and the rule for requests without a credential, with the file that describes them read and followed. */
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import {
  type AnonymousRule,
  type AuthenticationSetup,
  readAuthenticationConfiguration,
} from '@coracle/apiserver/auth/authentication-configuration';
import type { Clock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import { watchFile } from '../config/watched-file.ts';
import { ANONYMOUS_FLAG, type AuthenticationChoice, CONFIG_FLAG } from './authentication-choice.ts';
import { CommandError, oneLine } from './command.ts';

export interface OpenAuthenticationOptions {
  /** Issuers that are this server itself. */
  readonly disallowedIssuers: readonly string[];
  /** Everybody may everything: then nobody comes without a credential, unless the file says so. */
  readonly allowsAll: boolean;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Reads the file, if there is one, and follows it until `stop`: a good one takes the place of the one before, a bad one is logged and
 * changes nothing. Throws CommandError of one line.
 */
export function openAuthentication(
  { config, anonymous: flag }: AuthenticationChoice,
  { disallowedIssuers, allowsAll, clock, log }: OpenAuthenticationOptions,
): { readonly current: () => AuthenticationSetup; stop(): void } {
  const fallback: AnonymousRule = { enabled: (flag ?? true) && !allowsAll };
  if (allowsAll && flag !== false)
    log.warn('requests without a credential are refused: the authorizer AlwaysAllow would allow them everything');
  if (config === undefined) {
    const setup = { issuers: [], anonymous: fallback };
    return { current: () => setup, stop() {} };
  }
  const complete = (setup: AuthenticationSetup): AuthenticationSetup => ({ anonymous: fallback, ...setup });
  try {
    const text = readFileSync(config, 'utf8');
    const read = (next: string, initial?: AuthenticationSetup): AuthenticationSetup =>
      readAuthenticationConfiguration(next, { disallowedIssuers, caProblem, ...(initial && { initial }) });
    const initial = read(text);
    if (initial.anonymous && flag !== undefined)
      throw new Error(
        `--${ANONYMOUS_FLAG} flag cannot be set when anonymous field is configured in authentication configuration file`,
      );
    let current = complete(initial);
    const failed = (error: Error): void => {
      log.error('the authentication configuration was not taken over', { path: config, error: error.message });
    };
    const file = watchFile(config, {
      initial: text,
      clock,
      failed,
      changed(next) {
        current = complete(read(next, initial));
        log.info('reloaded the authentication configuration', { path: config });
      },
    });
    return { current: () => current, stop: file.stop };
  } catch (error) {
    throw new CommandError(`--${CONFIG_FLAG}: ${config}: ${oneLine(error)}`);
  }
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;

function caProblem(pem: string): string | undefined {
  const certificates = pem.match(CERTIFICATE) ?? [];
  if (certificates.length === 0) return 'data does not contain any valid RSA or ECDSA certificates';
  try {
    for (const certificate of certificates) new X509Certificate(certificate);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}
