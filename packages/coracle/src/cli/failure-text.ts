/** What a failure says to whoever typed the command: of a cluster that cannot be used, also which kubeconfig led there. */

import { ApiError } from '@coracle/apimachinery/meta/status';
import { kubeconfigPath } from '../config/cluster.ts';
import { defaultDataDir } from '../config/data-dir.ts';
import { type CommandContext, fileProblem, textFlag } from './command.ts';

/** How a connection fails before anything was asked, as the system and TLS call it. */
const NOT_REACHED =
  /^(E(CONNREFUSED|NOTFOUND|AI_AGAIN|HOSTUNREACH|NETUNREACH|TIMEDOUT)|.*(SELF_SIGNED|UNABLE_TO_|CERT_).*)$/;

/** The message of an error that a command ends with. */
export function failureText(error: unknown, context: Pick<CommandContext, 'flags' | 'environment'>): string {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof ApiError && error.code === 401)
    return `${message}: the server does not take the credential of ${kubeconfigPath(context)} (the admin's: --kubeconfig "$(coracle kubeconfig)")`;
  if ((error as NodeJS.ErrnoException | undefined)?.code === 'ENOSPC')
    return `no space is left on the disk that is written to (the data directory is ${textFlag(context.flags, 'data-dir') ?? defaultDataDir(context.environment)})`;
  const { path, syscall } = (error ?? {}) as NodeJS.ErrnoException;
  if (path !== undefined && syscall !== undefined)
    return `${fileProblem(path, error)}${syscall === 'mkdir' ? ' (another data directory: --data-dir DIR)' : ''}`;
  const code = message.startsWith('Cannot send ') ? codeOf(error) : undefined;
  if (code === undefined) return message;
  const next = code === 'ECONNREFUSED' ? '; nothing listens there: coracle up --detach starts a control plane' : '';
  return `${message} (according to ${kubeconfigPath(context)}${next})`;
}

/** The code of the first cause that is one of a connection. */
function codeOf(error: unknown): string | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    const { code } = at as NodeJS.ErrnoException;
    if (code !== undefined && NOT_REACHED.test(code)) return code;
  }
  return undefined;
}
