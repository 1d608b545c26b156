package lease

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

// group is a set of codes which mean the same for a term.
type group uint8

const (
	moving     group = iota + 1 // leadership or coordination is moving, or a transaction is just ending: nothing was done
	uncertain                   // the work may have been done although an error is answered
	fencing                     // the producer's id, epoch, sequence or transaction is over
	unsent                      // the client did not send the request
	noTxn                       // the coordinator holds no open transaction: nothing was committed, or it was aborted
	records                     // the broker will not take these records
	lost                        // the data asked for is not there any more
	barred                      // the worker may not, or this client and this broker do not fit together
	membership                  // membership codes, which a commit without a member never gets
	alien                       // codes of requests that a term never sends
	groups
)

// verdicts has one row for each group, one column for each step: init, read, produce, offsets, end.
//
// Produce never says Retry: the client repeats what can be repeated by itself, under the same sequence numbers. What it
// reports is final, and the same record handed over again would be another record.
//
// Nor does EndTxn: asked again, the client says that it is in no transaction, which is no error, whatever came of the first
// request. Only two answers to it prove that nothing was committed: that of noTxn, and the client's own refusal to send it.
// All others may answer a repetition, made inside the client, of a request that had been carried out: committed, answer lost,
// new holder fences, repetition answered PRODUCER_FENCED; or committed, answer lost, markers not yet written, repetition
// answered CONCURRENT_TRANSACTIONS.
var verdicts = [groups][steps]Verdict{
	moving:     {Retry, Retry, Fenced, Retry, Unknown},
	uncertain:  {Retry, Retry, Fenced, Retry, Unknown},
	fencing:    {Fenced, Fenced, Fenced, Fenced, Unknown},
	unsent:     {Retry, Retry, Fenced, Retry, Fenced},
	noTxn:      {Fenced, Fenced, Fenced, Fenced, Fenced},
	records:    {Fatal, Fatal, Refused, Refused, Unknown},
	lost:       {Fenced, Fenced, Fenced, Fenced, Unknown},
	barred:     {Fatal, Fatal, Fatal, Fatal, Unknown},
	membership: {Fenced, Fenced, Fenced, Fenced, Unknown},
	alien:      {Fatal, Fatal, Fatal, Fatal, Unknown},
}

var groupReasons = [groups]string{
	moving:     "the broker's side is moving",
	uncertain:  "the broker may have done it",
	fencing:    "the producer id, epoch or sequence is over",
	unsent:     "the client did not send the request",
	noTxn:      "the transaction is not open any more",
	records:    "the broker does not take these records",
	lost:       "the data is not there",
	barred:     "this worker is not permitted or does not fit the broker",
	membership: "an answer about group membership, which the commit does not use",
	alien:      "an answer to a request that a term never sends",
}

// codes has every code of the protocol that the client library knows.
var codes = map[*kerr.Error]group{
	// Broker-side failures without a known cause: it may have been done.
	kerr.UnknownServerError:           uncertain,
	kerr.RequestTimedOut:              uncertain, // includes a produce or offset commit that waits for replicas
	kerr.NetworkException:             uncertain,
	kerr.NotEnoughReplicasAfterAppend: uncertain, // written, not replicated
	kerr.KafkaStorageError:            uncertain,
	kerr.CorruptMessage:               uncertain, // on the wire; the client repeats it

	// Leaders, coordinators, controllers on the move, markers not yet written.
	kerr.UnknownTopicOrPartition:     moving, // metadata lags behind creation; a deleted topic runs into the deadline
	kerr.UnknownTopicID:              moving,
	kerr.InconsistentTopicID:         moving,
	kerr.LeaderNotAvailable:          moving,
	kerr.NotLeaderForPartition:       moving,
	kerr.BrokerNotAvailable:          moving,
	kerr.ReplicaNotAvailable:         moving,
	kerr.CoordinatorLoadInProgress:   moving,
	kerr.CoordinatorNotAvailable:     moving,
	kerr.NotCoordinator:              moving,
	kerr.NotEnoughReplicas:           moving, // rejected before it is written
	kerr.ConcurrentTransactions:      moving,
	kerr.FencedLeaderEpoch:           moving,
	kerr.UnknownLeaderEpoch:          moving,
	kerr.OffsetNotAvailable:          moving,
	kerr.UnstableOffsetCommit:        moving, // a transaction with offsets is still open
	kerr.ThrottlingQuotaExceeded:     moving,
	kerr.PreferredLeaderNotAvailable: moving,
	kerr.EligibleLeadersNotAvailable: moving,
	kerr.ListenerNotFound:            moving,
	kerr.NotController:               moving,
	kerr.StaleControllerEpoch:        moving,
	kerr.StaleBrokerEpoch:            moving,
	kerr.ReassignmentInProgress:      moving,
	kerr.FetchSessionIDNotFound:      moving,
	kerr.InvalidFetchSessionEpoch:    moving,
	kerr.FetchSessionTopicIDError:    moving,
	kerr.OffsetMovedToTieredStorage:  moving,
	kerr.NewLeaderElected:            moving,
	kerr.RebootstrapRequired:         moving,
	kerr.OperationNotAttempted:       unsent,

	// The lease is another's, or the client's state and the broker's have parted.
	kerr.ProducerFenced:               fencing,
	kerr.InvalidProducerEpoch:         fencing, // what Produce and TxnOffsetCommit answer to a zombie
	kerr.InvalidProducerIDMapping:     fencing, // the id expired, KAFKA-18019
	kerr.UnknownProducerID:            fencing, // the partition forgot the producer
	kerr.OutOfOrderSequenceNumber:     fencing,
	kerr.DuplicateSequenceNumber:      fencing,
	kerr.TransactionCoordinatorFenced: fencing,
	kerr.TransactionAbortable:         fencing, // KIP-890; aborting is left to the next InitProducerID
	kerr.TransactionalIDNotFound:      fencing,
	kerr.InvalidTxnState:              noTxn,

	kerr.MessageTooLarge:             records,
	kerr.RecordListTooLarge:          records,
	kerr.InvalidRecord:               records,
	kerr.InvalidTimestamp:            records,
	kerr.PolicyViolation:             records,
	kerr.OffsetMetadataTooLarge:      records,
	kerr.InvalidCommitOffsetSize:     records,
	kerr.UnsupportedForMessageFormat: records,
	kerr.UnsupportedCompressionType:  records,

	kerr.OffsetOutOfRange:   lost,
	kerr.PositionOutOfRange: lost,
	kerr.SnapshotNotFound:   lost,
	kerr.LogDirNotFound:     lost,

	kerr.TopicAuthorizationFailed:           barred,
	kerr.GroupAuthorizationFailed:           barred,
	kerr.ClusterAuthorizationFailed:         barred,
	kerr.TransactionalIDAuthorizationFailed: barred,
	kerr.DelegationTokenAuthorizationFailed: barred,
	kerr.SaslAuthenticationFailed:           barred,
	kerr.UnsupportedSaslMechanism:           barred,
	kerr.IllegalSaslState:                   barred,
	kerr.SecurityDisabled:                   barred,
	kerr.DelegationTokenAuthDisabled:        barred,
	kerr.DelegationTokenNotFound:            barred,
	kerr.DelegationTokenOwnerMismatch:       barred,
	kerr.DelegationTokenRequestNotAllowed:   barred,
	kerr.DelegationTokenExpired:             barred,
	kerr.InvalidPrincipalType:               barred,
	kerr.PrincipalDeserializationFailure:    barred,
	kerr.UnacceptableCredential:             barred,
	kerr.InvalidTransactionTimeout:          barred, // above the broker's transaction.max.timeout.ms
	kerr.InvalidRequiredAcks:                barred,
	kerr.InvalidFetchSize:                   barred,
	kerr.InvalidTopicException:              barred,
	kerr.InvalidGroupID:                     barred,
	kerr.InvalidRequest:                     barred,
	kerr.UnsupportedVersion:                 barred,
	kerr.InvalidConfig:                      barred,
	kerr.InconsistentClusterID:              barred,
	kerr.MismatchedEndpointType:             barred,
	kerr.UnsupportedEndpointType:            barred,

	kerr.IllegalGeneration:         membership,
	kerr.InconsistentGroupProtocol: membership,
	kerr.UnknownMemberID:           membership,
	kerr.InvalidSessionTimeout:     membership,
	kerr.RebalanceInProgress:       membership,
	kerr.MemberIDRequired:          membership,
	kerr.GroupMaxSizeReached:       membership,
	kerr.FencedInstanceID:          membership,
	kerr.FencedMemberEpoch:         membership,
	kerr.UnreleasedInstanceID:      membership,
	kerr.UnsupportedAssignor:       membership,
	kerr.StaleMemberEpoch:          membership,
	kerr.GroupIDNotFound:           membership,
	kerr.NonEmptyGroup:             membership,
	kerr.GroupSubscribedToTopic:    membership,

	// Topic, config and partition administration.
	kerr.TopicAlreadyExists:       alien,
	kerr.InvalidPartitions:        alien,
	kerr.InvalidReplicationFactor: alien,
	kerr.InvalidReplicaAssignment: alien,
	kerr.TopicDeletionDisabled:    alien,
	kerr.ElectionNotNeeded:        alien,
	kerr.NoReassignmentInProgress: alien,
	kerr.ResourceNotFound:         alien,
	kerr.DuplicateResource:        alien,
	kerr.GroupDeletionFailed:      alien,
	kerr.InvalidRegularExpression: alien,
	// Between brokers and controllers.
	kerr.InconsistentVoterSet:        alien,
	kerr.InvalidUpdateVersion:        alien,
	kerr.FeatureUpdateFailed:         alien,
	kerr.DuplicateBrokerRegistration: alien,
	kerr.BrokerIDNotRegistered:       alien,
	kerr.IneligibleReplica:           alien,
	kerr.UnknownControllerID:         alien,
	kerr.InvalidRegistration:         alien,
	kerr.InvalidVoterKey:             alien,
	kerr.DuplicateVoter:              alien,
	kerr.VoterNotFound:               alien,
	kerr.ControllerIDNotRegistered:   alien,
	// Telemetry, share groups, streams groups.
	kerr.UnknownSubscriptionID:                  alien,
	kerr.TelemetryTooLarge:                      alien,
	kerr.InvalidRecordState:                     alien,
	kerr.ShareSessionNotFound:                   alien,
	kerr.InvalidShareSessionEpoch:               alien,
	kerr.ShareSessionLimitReached:               alien,
	kerr.FencedStateEpoch:                       alien,
	kerr.StreamsInvalidTopology:                 alien,
	kerr.StreamsInvalidTopologyEpoch:            alien,
	kerr.StreamsTopologyFenced:                  alien,
	kerr.StreamsTopologyDescriptionUpdateFailed: alien,
}

// transport is the row of errors that are no answer of a broker: broken connections, time-outs, cancelled contexts, a closed
// client, whatever the client library finds wrong by itself. A produce that ends so is over: its records may still arrive, but
// no EndTxn follows it, and the next InitProducerID aborts them.
var transport = [steps]Verdict{Retry, Retry, Fenced, Retry, Unknown}

// Explain is Classify with the reason. A code that the table does not know is treated like one that a term never gets.
func Explain(err error, step Step) (Verdict, string) {
	if err == nil {
		return OK, ""
	}
	var code *kerr.Error
	if !errors.As(err, &code) {
		return transport[step], "no answer from the broker"
	}
	g, known := codes[code]
	if !known {
		return verdicts[alien][step], fmt.Sprintf("code %d is not known", code.Code)
	}
	return verdicts[g][step], groupReasons[g]
}
