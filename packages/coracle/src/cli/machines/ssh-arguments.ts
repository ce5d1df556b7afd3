/** The options that the host's ssh and scp are called with, so that they reach a guest through the API and know it again. */

import { shellWord } from './equivalent.ts';

export interface SshOptions {
  readonly user: string | undefined;
  /** What the guest's host key is filed under. */
  readonly hostKeyAlias: string;
  readonly knownHosts: string;
  /** Program and arguments whose standard input and output are the guest's port. */
  readonly proxy: readonly string[];
  readonly identities: readonly string[];
  /** Options of the user's own, as `-o` takes them; they come first, and the first one counts. */
  readonly more: readonly string[];
}

/** Both programs expand `%` in these values. */
const literal = (text: string): string => text.replaceAll('%', '%%');

/**
 * Arguments before the target, for ssh and scp alike. ProxyCommand is a line that ssh gives to a shell: each word of it is
 * quoted, and nothing in it is the user's text but paths.
 */
export function sshArguments(options: SshOptions): string[] {
  const proxy = literal(options.proxy.map(shellWord).join(' '));
  return [
    ...options.more.flatMap((option) => ['-o', option]),
    ...options.identities.flatMap((path) => ['-i', path]),
    ...(options.user === undefined ? [] : ['-o', `User=${options.user}`]),
    ...['-o', `ProxyCommand=${proxy}`],
    ...['-o', `HostKeyAlias=${options.hostKeyAlias}`],
    ...['-o', `UserKnownHostsFile="${literal(options.knownHosts)}"`],
    // The way there is authenticated: a key that is new is the guest's; one that changed is not.
    ...['-o', 'StrictHostKeyChecking=accept-new', '-o', 'GlobalKnownHostsFile=/dev/null', '-o', 'UpdateHostKeys=no'],
    ...['-o', 'CheckHostIP=no', '-o', 'ControlPath=none', '-o', 'LogLevel=ERROR'],
  ];
}
