/** The authorisation flags of `coracle up`, named as kube-apiserver's; `authorization-choice.ts` reads them. */
import { type FlagSpec, valueFlag } from './command.ts';

export const AUTHORIZATION_FLAGS: Readonly<Record<string, FlagSpec>> = {
  'authorization-mode': valueFlag(
    'LIST',
    'authorizers in their order: Node, RBAC, Webhook, AlwaysAllow, AlwaysDeny (default: Node,RBAC)',
  ),
  'authorization-webhook-config-file': valueFlag('FILE', 'kubeconfig of the webhook that mode Webhook asks'),
  'authorization-webhook-version': valueFlag(
    'VERSION',
    'version of the SubjectAccessReview it is sent, v1 or v1beta1 (default: v1beta1)',
  ),
  'authorization-webhook-cache-authorized-ttl': valueFlag(
    'DURATION',
    'how long an answer that allows is cached (default: 5m)',
  ),
  'authorization-webhook-cache-unauthorized-ttl': valueFlag(
    'DURATION',
    'how long an answer that does not is cached (default: 30s)',
  ),
  'authorization-config': valueFlag(
    'FILE',
    'AuthorizationConfiguration, in place of the flags above; read again when it changes',
  ),
};
