// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "testing"

// The conformance checks at the level of this package, by number. Their transcripts are in
// testdata, under the test's name.

func TestC12_CopiesToAllButTheSource(t *testing.T)     { runTranscript(t) }
func TestC13_FeedbackIsNeverReplicated(t *testing.T)   { runTranscript(t) }
func TestC14_UnknownOpcode(t *testing.T)               { runTranscript(t) }
func TestC16_UnknownGroup(t *testing.T)                { runTranscript(t) }
func TestC17_TwoMembersBehindOnePort(t *testing.T)     { runTranscript(t) }
func TestC18_AckIsMinimum(t *testing.T)                { runTranscript(t) }
func TestC19_AckOnce(t *testing.T)                     { runTranscript(t) }
func TestC20_SameAckAgain(t *testing.T)                { runTranscript(t) }
func TestC21_AcksReordered(t *testing.T)               { runTranscript(t) }
func TestC22_Wrap(t *testing.T)                        { runTranscript(t) }
func TestC23_AckBeyondHi(t *testing.T)                 { runTranscript(t) }
func TestC24_SilentMemberHolds(t *testing.T)           { runTranscript(t) }
func TestC25_LostAggregatedAck(t *testing.T)           { runTranscript(t) }
func TestC26_ChildAnswersAgain(t *testing.T)           { runTranscript(t) }
func TestC27_SourceIgnoredInMinimum(t *testing.T)      { runTranscript(t) }
func TestC28_SyndromeAndMSN(t *testing.T)              { runTranscript(t) }
func TestC29_NoFeedbackNoAck(t *testing.T)             { runTranscript(t) }
func TestC30_DuplicateAckBurst(t *testing.T)           { runTranscript(t) }
func TestC31_NakAfterAck(t *testing.T)                 { runTranscript(t) }
func TestC32_NakWaits(t *testing.T)                    { runTranscript(t) }
func TestC33_LowestNakFirst(t *testing.T)              { runTranscript(t) }
func TestC34_SameNakTwice(t *testing.T)                { runTranscript(t) }
func TestC35_NakAfterRetransmission(t *testing.T)      { runTranscript(t) }
func TestC36_PendingNakObsolete(t *testing.T)          { runTranscript(t) }
func TestC37_LaterNak(t *testing.T)                    { runTranscript(t) }
func TestC38_StaleNak(t *testing.T)                    { runTranscript(t) }
func TestC39_LostNak(t *testing.T)                     { runTranscript(t) }
func TestC40_LostRetransmission(t *testing.T)          { runTranscript(t) }
func TestC41_NakAtTheWrap(t *testing.T)                { runTranscript(t) }
func TestC42_LongestWait(t *testing.T)                 { runTranscript(t) }
func TestC43_RxeRnrThenSequence(t *testing.T)          { runTranscript(t) }
func TestC44_RnrBeatsSequence(t *testing.T)            { runTranscript(t) }
func TestC45_FatalWaitsForTheRest(t *testing.T)        { runTranscript(t) }
func TestC46_EvictOnFatal(t *testing.T)                { runTranscript(t) }
func TestC47_ReservedSyndrome(t *testing.T)            { runTranscript(t) }
func TestC48_ReadRequest(t *testing.T)                 { runTranscript(t) }
func TestC49_WriteRewritten(t *testing.T)              { runTranscript(t) }
func TestC50_RestartAtMiddle(t *testing.T)             { runTranscript(t) }
func TestC51_ZeroLengthWrite(t *testing.T)             { runTranscript(t) }
func TestC52_GoBackUsesTheOldTarget(t *testing.T)      { runTranscript(t) }
func TestC53_LostTargetMessage(t *testing.T)           { runTranscript(t) }
func TestC54_OutOfWindow(t *testing.T)                 { runTranscript(t) }
func TestC55_RemoveSlowest(t *testing.T)               { runTranscript(t) }
func TestC56_JoinMidMessage(t *testing.T)              { runTranscript(t) }
func TestC57_NoOldDataToTheJoiner(t *testing.T)        { runTranscript(t) }
func TestC58_SourceChange(t *testing.T)                { runTranscript(t) }
func TestC59_NewSourceTooEarly(t *testing.T)           { runTranscript(t) }
func TestC60_LateDuplicateOfTheOldSource(t *testing.T) { runTranscript(t) }
func TestC61_DelayedAckOfTheOldTurn(t *testing.T)      { runTranscript(t) }
func TestC62_FirstPacketOfATurnLost(t *testing.T)      { runTranscript(t) }
func TestC63_OnlyTheMostCongestedLeg(t *testing.T)     { runTranscript(t) }
func TestC64_MostCongestedGoesSilent(t *testing.T)     { runTranscript(t) }
func TestC65_CnpIsTheSources(t *testing.T)             { runTranscript(t) }

func TestC67_SingleLossRepairedHere(t *testing.T)    { runTranscript(t) }
func TestC68_NoGapAfterTheRepair(t *testing.T)       { runTranscript(t) }
func TestC69_TailLoss(t *testing.T)                  { runTranscript(t) }
func TestC70_StoreFull(t *testing.T)                 { runTranscript(t) }
func TestC71_RetainedIsNotAcknowledged(t *testing.T) { runTranscript(t) }
