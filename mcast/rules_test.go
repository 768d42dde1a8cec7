// Copyright 2026 The Gleam Authors
// SPDX-License-Identifier: Apache-2.0

package mcast

import "testing"

// One test for each rule of docs/AGGREGATION.md. The transcripts are in testdata, under
// the test's name.

func TestR01_MinimumNotMaximum(t *testing.T)                    { runTranscript(t) }
func TestR02_AnyLegMayReleaseTheAck(t *testing.T)               { runTranscript(t) }
func TestR03_EveryFeedbackIsEvaluated(t *testing.T)             { runTranscript(t) }
func TestR04_CircularCompare(t *testing.T)                      { runTranscript(t) }
func TestR05_NakAfterNak(t *testing.T)                          { runTranscript(t) }
func TestR06_StaleNakIgnored(t *testing.T)                      { runTranscript(t) }
func TestR07_PendingNakPerLeg(t *testing.T)                     { runTranscript(t) }
func TestR08_PendingNakEndsWhenServed(t *testing.T)             { runTranscript(t) }
func TestR09_OneNakPerPassage(t *testing.T)                     { runTranscript(t) }
func TestR10_LostRetransmissionIsLeftToTheTimeout(t *testing.T) { runTranscript(t) }
func TestR11_AckOnlyWhenTheMinimumMoves(t *testing.T)           { runTranscript(t) }
func TestR12_DuplicatesAreAnsweredHere(t *testing.T)            { runTranscript(t) }
func TestR13_ChildAnswersItsParent(t *testing.T)                { runTranscript(t) }
func TestR14_NakOnlyAtAPlusOne(t *testing.T)                    { runTranscript(t) }
func TestR15_SourceIsNoReceiver(t *testing.T)                   { runTranscript(t) }
func TestR16_FirstPSNIsRegistered(t *testing.T)                 { runTranscript(t) }
func TestR17_SourceIsAnAddress(t *testing.T)                    { runTranscript(t) }
func TestR18_PSNSpacePerTurn(t *testing.T)                      { runTranscript(t) }
func TestR19_RnrStaysRnr(t *testing.T)                          { runTranscript(t) }
func TestR20_AckCarriesNoReceiversCredits(t *testing.T)         { runTranscript(t) }
func TestR21_StatePerMember(t *testing.T)                       { runTranscript(t) }
func TestR22_ClassifiedByOpcode(t *testing.T)                   { runTranscript(t) }
func TestR23_DeadReceiverIsEvicted(t *testing.T)                { runTranscript(t) }
func TestR23_LevelsOfSwitches(t *testing.T)                     { runTranscript(t) }
func TestR24_RewriteOnlyAtTheEdge(t *testing.T)                 { runTranscript(t) }
func TestR25_FatalIsSticky(t *testing.T)                        { runTranscript(t) }
func TestR26_EvictKeepsTheLastReceiver(t *testing.T)            { runTranscript(t) }
func TestR27_SymmetricWindow(t *testing.T)                      { runTranscript(t) }
func TestR28_WhatNoGroupCanDo(t *testing.T)                     { runTranscript(t) }
func TestR29_SourceChangesBetweenMessages(t *testing.T)         { runTranscript(t) }
func TestR30_JoinAtAMessage(t *testing.T)                       { runTranscript(t) }
func TestR31_RemoveReleasesTheAck(t *testing.T)                 { runTranscript(t) }
func TestR32_MostCongestedLegSlowsTheSource(t *testing.T)       { runTranscript(t) }
func TestR33_NothingIsBelievedUnverified(t *testing.T)          { runTranscript(t) }

func TestR73_BackAgain(t *testing.T)       { runTranscript(t) }
func TestR73_WaitsApart(t *testing.T)      { runTranscript(t) }
func TestR73_HowMembersLeave(t *testing.T) { runTranscript(t) }

func TestR65_TheNextSourceLacksIt(t *testing.T) { runTranscript(t) }
func TestR74_NakMeetsTheCopy(t *testing.T)      { runTranscript(t) }
func TestR75_NothingToAnswer(t *testing.T)      { runTranscript(t) }

func TestR76_ReceiveOnly(t *testing.T) { runTranscript(t) }
func TestR107_Replies(t *testing.T)    { runTranscript(t) }

func TestR80_FailedGroupAnswers(t *testing.T) { runTranscript(t) }

func TestR31_LeavingAtRest(t *testing.T)        { runTranscript(t) }
func TestR31_LeavingBehindASwitch(t *testing.T) { runTranscript(t) }
func TestR30_JoinersMaySend(t *testing.T)       { runTranscript(t) }

func TestR35_UpdateMembers(t *testing.T)               { runTranscript(t) }
func TestR35_UpdateReleasesTheAck(t *testing.T)        { runTranscript(t) }
func TestR36_QuorumHasIt(t *testing.T)                 { runTranscript(t) }
func TestR36_JoinerIsNoneOfTheQuorumYet(t *testing.T)  { runTranscript(t) }
func TestR37_StrandedReceiver(t *testing.T)            { runTranscript(t) }
func TestR37_KeptFed(t *testing.T)                     { runTranscript(t) }
func TestR38_LagLimitPSNs(t *testing.T)                { runTranscript(t) }
func TestR38_LagLimitTime(t *testing.T)                { runTranscript(t) }
func TestR39_SilentUnderStrict(t *testing.T)           { runTranscript(t) }
func TestR39_AllSilentUnderStrict(t *testing.T)        { runTranscript(t) }
func TestR39_AllSilentUnderOtherPolicies(t *testing.T) { runTranscript(t) }
func TestR37_NakInVain(t *testing.T)                   { runTranscript(t) }
func TestR40_QuorumLost(t *testing.T)                  { runTranscript(t) }
func TestR41_TargetsOfTheLastMessage(t *testing.T)     { runTranscript(t) }
func TestR41_InvalidTargetMessage(t *testing.T)        { runTranscript(t) }
func TestR41_TargetsInATree(t *testing.T)              { runTranscript(t) }

func TestR42_RetainedWithinTheBudget(t *testing.T)       { runTranscript(t) }
func TestR42_NewFrameForAnOldOne(t *testing.T)           { runTranscript(t) }
func TestR43_NakServedHere(t *testing.T)                 { runTranscript(t) }
func TestR43_TriesEnd(t *testing.T)                      { runTranscript(t) }
func TestR44_NothingPastTheCursor(t *testing.T)          { runTranscript(t) }
func TestR45_SlowIsNotLost(t *testing.T)                 { runTranscript(t) }
func TestR45_ProbesGrow(t *testing.T)                    { runTranscript(t) }
func TestR45_OldNewsIsNoAnswer(t *testing.T)             { runTranscript(t) }
func TestR45_OneByOneIsNotLost(t *testing.T)             { runTranscript(t) }
func TestR45_TheWholeTailIsLost(t *testing.T)            { runTranscript(t) }
func TestR45_TheLastBurstEnds(t *testing.T)              { runTranscript(t) }
func TestR45_EscalatedAfterTheTries(t *testing.T)        { runTranscript(t) }
func TestR112_TheSwitchAsks(t *testing.T)                { runTranscript(t) }
func TestR112_ARepeatedPacketAsks(t *testing.T)          { runTranscript(t) }
func TestR46_RnrHeldHere(t *testing.T)                   { runTranscript(t) }
func TestR46_WaitsAddUp(t *testing.T)                    { runTranscript(t) }
func TestR47_LostBeforeTheSwitch(t *testing.T)           { runTranscript(t) }
func TestR47_HoleBehindTheCursor(t *testing.T)           { runTranscript(t) }
func TestR47_NothingFits(t *testing.T)                   { runTranscript(t) }
func TestR48_TheSourceGoesBack(t *testing.T)             { runTranscript(t) }
func TestR48_TheSourceGoesBackDuringRepair(t *testing.T) { runTranscript(t) }
func TestR49_StragglersAreRepaired(t *testing.T)         { runTranscript(t) }
func TestR49_SlowWithoutALoss(t *testing.T)              { runTranscript(t) }
func TestR49_OldFramesGoFirst(t *testing.T)              { runTranscript(t) }
func TestR49_FramesOfOneThatLeaves(t *testing.T)         { runTranscript(t) }
func TestR50_AskedBySwitch(t *testing.T)                 { runTranscript(t) }
func TestR50_RepairsItsOwn(t *testing.T)                 { runTranscript(t) }
func TestR45_PatienceGrows(t *testing.T)                 { runTranscript(t) }
func TestR45_PatienceEnds(t *testing.T)                  { runTranscript(t) }
func TestR45_NakWhileItIsWaitedFor(t *testing.T)         { runTranscript(t) }
func TestR46_ReadyAgain(t *testing.T)                    { runTranscript(t) }
func TestR46_WaitingIsNoSilence(t *testing.T)            { runTranscript(t) }
func TestR47_PendingIsNotProbed(t *testing.T)            { runTranscript(t) }
func TestR47_TheSourceIsOnItsWay(t *testing.T)           { runTranscript(t) }
func TestR49_NothingIsGivenUpInVain(t *testing.T)        { runTranscript(t) }
func TestR49_OvertakenInTheMiddle(t *testing.T)          { runTranscript(t) }
func TestR42_LargerTheSecondTime(t *testing.T)           { runTranscript(t) }

func TestR60_RemovedTogether(t *testing.T)            { runTranscript(t) }
func TestR62_ADuplicateIsAPassage(t *testing.T)       { runTranscript(t) }
func TestR63_DuplicatesOfWhatWasSent(t *testing.T)    { runTranscript(t) }
func TestR41_ALegsNextMemberHasNoTarget(t *testing.T) { runTranscript(t) }
func TestR56_TheSourceAsksToo(t *testing.T)           { runTranscript(t) }
func TestR56_NotReadyIsNotProbed(t *testing.T)        { runTranscript(t) }
func TestR57_ProbedUntilGivenUp(t *testing.T)         { runTranscript(t) }
func TestR57_NeverDeadIsLeftAlone(t *testing.T)       { runTranscript(t) }
func TestR57_NothingWasAskedFor(t *testing.T)         { runTranscript(t) }
func TestR57_LagInTimeIsAskedFor(t *testing.T)        { runTranscript(t) }
func TestR57_WithoutRepair(t *testing.T)              { runTranscript(t) }
func TestR57_BehindAHole(t *testing.T)                { runTranscript(t) }
func TestR57_ASwitchIsAsked(t *testing.T)             { runTranscript(t) }
func TestR57_ASwitchAnswers(t *testing.T)             { runTranscript(t) }
func TestR57_ASwitchThatWaitsAnswers(t *testing.T)    { runTranscript(t) }
func TestR57_HadNothing(t *testing.T)                 { runTranscript(t) }
func TestR57_BehindAQuorum(t *testing.T)              { runTranscript(t) }
func TestR57_AMemberIsToldNothing(t *testing.T)       { runTranscript(t) }
func TestR57_OneByOne(t *testing.T)                   { runTranscript(t) }
func TestR58_PausesAreNoSilence(t *testing.T)         { runTranscript(t) }
func TestR58_LagIsNotThePauses(t *testing.T)          { runTranscript(t) }
func TestR58_NoProbeForAPause(t *testing.T)           { runTranscript(t) }
func TestR58_PausesAreNoSilenceToProbes(t *testing.T) { runTranscript(t) }
func TestR59_QueuedIsNotSent(t *testing.T)            { runTranscript(t) }
func TestR59_DefaultFollowsTheRoundTrip(t *testing.T) { runTranscript(t) }

func TestR64_DoubtfulIsVerified(t *testing.T)    { runTranscript(t) }
func TestR65_StalledInsideAMessage(t *testing.T) { runTranscript(t) }
func TestR65_StalledAfterAMessage(t *testing.T)  { runTranscript(t) }

func TestR66_WaitYourTurn(t *testing.T) { runTranscript(t) }

func TestR67_LengthInRETH(t *testing.T) { runTranscript(t) }

func TestR52_ProbedBeforeData(t *testing.T)       { runTranscript(t) }
func TestR52_FreshRxe(t *testing.T)               { runTranscript(t) }
func TestR52_NothingAcceptedInATurn(t *testing.T) { runTranscript(t) }
func TestR53_JoinerProbed(t *testing.T)           { runTranscript(t) }
func TestR54_AckOfWhatWasNotSent(t *testing.T)    { runTranscript(t) }
func TestR55_OldNumbers(t *testing.T)             { runTranscript(t) }
func TestR55_OldNumbersUnderStrict(t *testing.T)  { runTranscript(t) }
func TestR55_SilentToProbes(t *testing.T)         { runTranscript(t) }
func TestR55_QuorumGoesOn(t *testing.T)           { runTranscript(t) }

func TestR68_SentFromBelow(t *testing.T)   { runTranscript(t) }
func TestR68_OutlivesTheTurn(t *testing.T) { runTranscript(t) }

func TestR83_StoredBeforeData(t *testing.T)  { runTranscript(t) }
func TestR83_ReceiversThatJoin(t *testing.T) { runTranscript(t) }
func TestR83_FarBeyond(t *testing.T)         { runTranscript(t) }
func TestR83_Resume(t *testing.T)            { runTranscript(t) }
func TestR83_OldTurn(t *testing.T)           { runTranscript(t) }
func TestR83_WrongAnswers(t *testing.T)      { runTranscript(t) }
func TestR83_SilentMembers(t *testing.T)     { runTranscript(t) }
func TestR83_EmptyAnswers(t *testing.T)      { runTranscript(t) }
func TestR83_NextTurn(t *testing.T)          { runTranscript(t) }
func TestR83_TurnKept(t *testing.T)          { runTranscript(t) }
func TestR83_Stranded(t *testing.T)          { runTranscript(t) }
func TestR83_StrandedAlone(t *testing.T)     { runTranscript(t) }
func TestR83_BetweenTurns(t *testing.T)      { runTranscript(t) }
func TestR83_AtRest(t *testing.T)            { runTranscript(t) }
func TestR83_MembersLeave(t *testing.T)      { runTranscript(t) }
func TestR83_Joiners(t *testing.T)           { runTranscript(t) }
func TestR83_Refused(t *testing.T)           { runTranscript(t) }
func TestR83_FileIsOld(t *testing.T)         { runTranscript(t) }
func TestR83_NotInTheFile(t *testing.T)      { runTranscript(t) }
func TestR83_JoinsAfterTurns(t *testing.T)   { runTranscript(t) }

func TestR84_TokenFirst(t *testing.T)         { runTranscript(t) }
func TestR84_TheLeaf(t *testing.T)            { runTranscript(t) }
func TestR85_NobodyWaits(t *testing.T)        { runTranscript(t) }
func TestR85_TurnEnds(t *testing.T)           { runTranscript(t) }
func TestR85_TurnEndsBeforeData(t *testing.T) { runTranscript(t) }
func TestR85_TheFileIsSlow(t *testing.T)      { runTranscript(t) }
func TestR86_Frozen(t *testing.T)             { runTranscript(t) }

func TestR87_OtherRegistration(t *testing.T) { runTranscript(t) }
func TestR87_TagToTheParent(t *testing.T)    { runTranscript(t) }

func TestR80_FailedInAResume(t *testing.T)   { runTranscript(t) }
func TestR88_DeletedInFlight(t *testing.T)   { runTranscript(t) }
func TestR88_DeletedWithoutUna(t *testing.T) { runTranscript(t) }

func TestR89_PositionFarAway(t *testing.T)      { runTranscript(t) }
func TestR89_FromAbove(t *testing.T)            { runTranscript(t) }
func TestR89_Transit(t *testing.T)              { runTranscript(t) }
func TestR89_BothAgain(t *testing.T)            { runTranscript(t) }
func TestR101_Joining(t *testing.T)             { runTranscript(t) }
func TestR101_JoinsWhileResuming(t *testing.T)  { runTranscript(t) }
func TestR101_MovedWhileResuming(t *testing.T)  { runTranscript(t) }
func TestR101_JoinsTheTurn(t *testing.T)        { runTranscript(t) }
func TestR83_FirstOwnMember(t *testing.T)       { runTranscript(t) }
func TestR83_PositionsWrap(t *testing.T)        { runTranscript(t) }
func TestR83_FullHistory(t *testing.T)          { runTranscript(t) }
func TestR83_RaisedBeyondTheLimit(t *testing.T) { runTranscript(t) }

func TestR90_Aside(t *testing.T)                { runTranscript(t) }
func TestR90_LearntBeforeTheMove(t *testing.T)  { runTranscript(t) }
func TestR90_FromUpstream(t *testing.T)         { runTranscript(t) }
func TestR90_MovedBetweenTurns(t *testing.T)    { runTranscript(t) }
func TestR90_BetweenLegs(t *testing.T)          { runTranscript(t) }
func TestR90_ReleasedByTheUpdate(t *testing.T)  { runTranscript(t) }
func TestR90_TheSourceMoves(t *testing.T)       { runTranscript(t) }
func TestR90_TheFormerParentStays(t *testing.T) { runTranscript(t) }

func TestR97_OffloadedAndTakenBack(t *testing.T)  { runTranscript(t) }
func TestR98_LateLeg(t *testing.T)                { runTranscript(t) }
func TestR99_HadByOneSwitch(t *testing.T)         { runTranscript(t) }
func TestR99_OtherSource(t *testing.T)            { runTranscript(t) }
func TestR100_SilentBefore(t *testing.T)          { runTranscript(t) }
func TestR102_BehindARequest(t *testing.T)        { runTranscript(t) }
func TestR103_GapBeforeTheFastPath(t *testing.T)  { runTranscript(t) }
func TestR113_ACKsOfTheFastPath(t *testing.T)     { runTranscript(t) }
func TestR105_TheQuestionIsPassedOn(t *testing.T) { runTranscript(t) }
func TestR115_NothingBefore(t *testing.T)         { runTranscript(t) }
func TestR115_APositionBesides(t *testing.T)      { runTranscript(t) }
func TestR115_WhoJoins(t *testing.T)              { runTranscript(t) }
func TestR111_ReportsOfOneSession(t *testing.T)   { runTranscript(t) }
