/** The flags of `coracle up` about who may come, named as kube-apiserver's; `authentication-choice.ts` reads them. */
import type { FlagSpec } from './command.ts';

export const AUTHENTICATION_FLAGS: Readonly<Record<string, FlagSpec>> = {
  'authentication-config': {
    type: 'string',
    value: 'FILE',
    summary: 'AuthenticationConfiguration: issuers of tokens, in place of --oidc-*; read again when it changes',
  },
  'anonymous-auth': {
    type: 'string',
    value: 'BOOL',
    summary: 'whether requests without a credential are served as system:anonymous (default: true)',
  },
};
