/** What other packages use of this one: nothing else is theirs to import. */
export { certificateControllers, type KeyHolder } from './certificates/certificate-controllers.ts';
export { PEER_AUTHORITY, PEER_BUNDLE, PEER_SIGNER } from './certificates/peer-authority.ts';
export {
  createPeerController,
  type PeerKeyWork,
  peerNamespaceRules,
  peerRules,
} from './certificates/peer-controller.ts';
export { SIGNING_REQUESTS, type SigningRequest } from './certificates/signing-request.ts';
export { kubeControllers } from './controllers/kube-controllers.ts';
export { silentConditions, wantedTaints } from './controllers/node-lifecycle-controller.ts';
export { createScheduler, schedulerRules } from './scheduler/scheduler.ts';
export { DEFAULT_CLASS, defaultClasses } from './storage/default-classes.ts';
export { createPools } from './storage/pools.ts';
export { poolControllers, storageControllers } from './storage/storage-controllers.ts';
