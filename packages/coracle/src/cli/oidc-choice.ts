/** Which OpenID Connect issuer `coracle up` believes, from its flags. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { type OidcSettings, oidcDefaults } from '@coracle/apiserver/auth/oidc';
import { SIGNING_ALGORITHMS } from '@coracle/apiserver/auth/oidc-keys';
import { OIDC_FLAGS } from './access-flags.ts';
import { CommandError, type FlagValues, failingAs, listFlag, textFlag, UsageError } from './command.ts';

/** What was chosen; the CA is still a path. */
export interface OidcChoice extends Omit<OidcSettings, 'ca'> {
  readonly caFile?: string;
}

/** Undefined when no issuer is believed. Throws UsageError. */
export function oidcChoice(flags: FlagValues): OidcChoice | undefined {
  const issuerUrl = textFlag(flags, 'oidc-issuer-url');
  const clientId = textFlag(flags, 'oidc-client-id');
  if (issuerUrl === undefined || clientId === undefined) {
    const given = Object.keys(OIDC_FLAGS).find((name) => flags[name] !== undefined);
    if (given === undefined) return undefined;
    throw new UsageError(`--${given} needs --oidc-issuer-url and --oidc-client-id`);
  }
  if (URL.parse(issuerUrl)?.protocol !== 'https:')
    throw new UsageError(`--oidc-issuer-url takes an https URL, not ${JSON.stringify(issuerUrl)}`);
  const usernameClaim = textFlag(flags, 'oidc-username-claim');
  const defaults = oidcDefaults({ issuerUrl, ...(usernameClaim !== undefined && { usernameClaim }) });
  const prefix = textFlag(flags, 'oidc-username-prefix');
  const groupsClaim = textFlag(flags, 'oidc-groups-claim');
  const caFile = textFlag(flags, 'oidc-ca-file');
  return {
    issuerUrl,
    clientId,
    usernameClaim: defaults.usernameClaim,
    usernamePrefix: prefix === undefined ? defaults.usernamePrefix : prefix === '-' ? '' : prefix,
    ...(groupsClaim !== undefined && { groupsClaim }),
    groupsPrefix: textFlag(flags, 'oidc-groups-prefix') ?? defaults.groupsPrefix,
    signingAlgorithms: algorithms(textFlag(flags, 'oidc-signing-algs')) ?? defaults.signingAlgorithms,
    requiredClaims: Object.fromEntries(listFlag(flags, 'oidc-required-claim').map(requiredClaim)),
    ...(caFile !== undefined && { caFile: resolve(caFile) }),
  };
}

function algorithms(list: string | undefined): string[] | undefined {
  const names = list?.split(',').map((name) => name.trim());
  const unknown = names?.find((name) => !SIGNING_ALGORITHMS.includes(name));
  if (unknown === undefined) return names;
  const known = SIGNING_ALGORITHMS.join(', ');
  throw new UsageError(`--oidc-signing-algs: ${JSON.stringify(unknown)} is none of ${known}`);
}

function requiredClaim(text: string): [name: string, value: string] {
  const at = text.indexOf('=');
  if (at <= 0) throw new UsageError(`--oidc-required-claim takes CLAIM=VALUE, not ${JSON.stringify(text)}`);
  return [text.slice(0, at), text.slice(at + 1)];
}

/** The choice with its CA read. Throws CommandError of one line. */
export function oidcSettings({ caFile, ...choice }: OidcChoice): OidcSettings {
  if (caFile === undefined) return choice;
  return { ...choice, ca: failingAs(CommandError, '--oidc-ca-file: ', () => readFileSync(caFile, 'utf8')) };
}
