/** The flags of `coracle up` about who may come, named as kube-apiserver's; `authentication-choice.ts` reads them. */
import { type FlagSpec, valueFlag } from './command.ts';

export const AUTHENTICATION_FLAGS: Readonly<Record<string, FlagSpec>> = {
  'authentication-config': valueFlag(
    'FILE',
    'AuthenticationConfiguration: issuers of tokens, in place of --oidc-*; read again when it changes',
  ),
  'anonymous-auth': valueFlag(
    'BOOL',
    'whether requests without a credential are served as system:anonymous (default: true)',
  ),
};
