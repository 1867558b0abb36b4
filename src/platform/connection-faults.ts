/** What the code of a system or a TLS error means, for the operator who set the address. */
export const CONNECTION_FAULTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused: nothing listens at that address and port',
  ECONNRESET: 'connection reset by the peer',
  EPIPE: 'connection closed by the peer',
  ETIMEDOUT: 'no connection in time',
  EHOSTUNREACH: 'host not reachable',
  ENETUNREACH: 'network not reachable',
  ENOTFOUND: 'host name not found',
  EAI_AGAIN: 'host name could not be looked up',
  SELF_SIGNED_CERT_IN_CHAIN: 'certificate is not trusted: NODE_EXTRA_CA_CERTS adds an authority of your own',
  DEPTH_ZERO_SELF_SIGNED_CERT:
    'certificate is not trusted: it is self-signed, NODE_EXTRA_CA_CERTS can name it',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    'certificate is not trusted: NODE_EXTRA_CA_CERTS adds an authority of your own',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    'certificate is not trusted: NODE_EXTRA_CA_CERTS adds an authority of your own',
  UNABLE_TO_GET_ISSUER_CERT: 'certificate is not trusted: NODE_EXTRA_CA_CERTS adds an authority of your own',
  CERT_HAS_EXPIRED: 'certificate has expired',
  CERT_NOT_YET_VALID: 'certificate is not valid yet: are the clocks right?',
  ERR_TLS_CERT_ALTNAME_INVALID: 'certificate names another host than the URL',
  ERR_SSL_WRONG_VERSION_NUMBER: 'the port does not speak TLS',
  EPROTO: 'the port does not speak TLS',
};
