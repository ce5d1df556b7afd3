/** The flags of the token webhook of `coracle up`, named as kube-apiserver's; `token-webhook-choice.ts` reads them. */
import { type FlagSpec, valueFlag } from './command.ts';

export const TOKEN_WEBHOOK_FLAGS: Readonly<Record<string, FlagSpec>> = {
  'authentication-token-webhook-config-file': valueFlag(
    'FILE',
    'kubeconfig of a webhook that authenticates tokens no other authenticator knows (default: none)',
  ),
  'authentication-token-webhook-version': valueFlag(
    'VERSION',
    'version of the TokenReview it is sent, v1 or v1beta1 (default: v1beta1)',
  ),
  'authentication-token-webhook-cache-ttl': valueFlag('DURATION', 'how long its answers are cached (default: 2m)'),
};
